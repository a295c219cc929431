import { CarillonError } from "../errors.js";
import { EXCLUSION_KINDS } from "./exclude/read.js";
import { MAX_EXPRESSION_LENGTH } from "./kinds/expression.js";
import type { ExclusionKind } from "./kinds/kind.js";
import type { Schedule } from "./types.js";

/** The most members of a union, and the most exclusions in one list. */
export const MAX_ITEMS = 32;
/** The most members and exclusions in all. */
const MAX_SPECS = 64;
/** The most characters of all expressions together. */
const MAX_TEXT = 4_096;
/** The most steps of one search, see `scheduleSteps`. */
const MAX_STEPS = 256;
/** Most references of members to calendars, each of which has many exclusions. */
const MAX_NAMED = 64;

/** A schedule or a member of a union. */
interface Spec {
  readonly except?: readonly object[] | undefined;
}

type Sized = Spec & { readonly any?: readonly Spec[] | undefined };

function partsOf({ any, ...whole }: Sized) {
  return any === undefined ? { members: [whole], shared: [] } : { members: any, shared: whole.except ?? [] };
}

/**
 * Cost of one search for a time, the same on each machine: a step for each member, and one for each exclusion of each
 * member. At most 256; a plain schedule has 1.
 */
export function scheduleSteps(schedule: Schedule): number {
  const { members, shared } = partsOf(schedule as Sized);
  return stepsOf(members, shared);
}

/**
 * Refuses a schedule that is too large, so that each search stays cheap.
 * @throws `INVALID_SCHEDULE`
 */
export function checkSize({ any, ...whole }: Sized): void {
  const { members, shared } = partsOf({ any, ...whole });
  const fault =
    tooMany(members, shared) ??
    tooLong([...members, ...members.flatMap(exclusions), ...shared]) ??
    tooNamed(members, shared) ??
    tooManySteps(members, shared);
  if (fault === undefined) return;
  const [what, remedy] = fault;
  throw new CarillonError("INVALID_SCHEDULE", what, {
    field: any ? "schedule.any" : "schedule.except",
    remedy,
  });
}

type Fault = readonly [what: string, remedy: string] | undefined;

/** Checks the lengths of lists whose items are not checked yet. */
export function tooMany(members: readonly unknown[], shared: readonly unknown[] = []): Fault {
  const specs = members.reduce<number>((sum, member) => sum + 1 + exclusions(member).length, shared.length);
  if (specs <= MAX_SPECS) return undefined;
  return [`There are ${specs} members and exclusions.`, `Use at most ${MAX_SPECS} in all.`];
}

function exclusions(member: unknown): readonly object[] {
  const except = (member as Spec | null)?.except;
  return Array.isArray(except) ? except : [];
}

function tooLong(specs: readonly object[]): Fault {
  // Longer ones are refused separately.
  const length = (text: string) => Math.min(text.length, MAX_EXPRESSION_LENGTH);
  const text = specs.flatMap(valuesThat("characters")).reduce((sum, one) => sum + length(one), 0);
  if (text <= MAX_TEXT) return undefined;
  return [`The expressions have ${text} characters together.`, `Use at most ${MAX_TEXT}, or several tasks.`];
}

/** Returns a function that lists the values of a schedule that count in the given way. */
function valuesThat(how: ExclusionKind["counts"]): (spec: object) => string[] {
  const keys = EXCLUSION_KINDS.filter(({ counts }) => counts === how).map(({ key }) => key);
  return (spec) =>
    keys
      .map((key) => (spec as Record<string, string | undefined>)[key])
      .filter((value) => value !== undefined);
}

function tooNamed(members: readonly Spec[], shared: readonly object[]): Fault {
  const named = (specs: readonly Spec[]) => specs.flatMap(valuesThat("reference")).length;
  const times = named(members.flatMap(exclusions)) + members.length * named(shared);
  if (times <= MAX_NAMED) return undefined;
  return [
    `Its members name calendars ${times} times, those of the union counted for each member.`,
    `Use at most ${MAX_NAMED}.`,
  ];
}

function tooManySteps(members: readonly Spec[], shared: readonly object[]): Fault {
  const steps = stepsOf(members, shared);
  if (steps <= MAX_STEPS) return undefined;
  return [
    `Each search for a time takes ${steps} steps: one for each of ${members.length} members, and one for each exclusion of each member.`,
    `Use at most ${MAX_STEPS} steps: fewer members or exclusions, a calendar in place of many exclusions, or several tasks.`,
  ];
}

function stepsOf(members: readonly Spec[], shared: readonly object[]): number {
  return members.reduce((sum, member) => sum + 1 + shared.length + exclusions(member).length, 0);
}
