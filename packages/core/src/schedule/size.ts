import { CarillonError } from "../errors.js";
import { MAX_EXPRESSION_LENGTH } from "./plan.js";

/** The most members of a union, and the most exclusions beside each other. */
export const MAX_ITEMS = 32;
/** The most members and exclusions in all. */
const MAX_SPECS = 64;
/** The most characters of all expressions together. */
const MAX_TEXT = 4_096;
/** How often members may name a calendar, each of which has many exclusions. */
const MAX_NAMED = 64;

/** What of a schedule, a member or an exclusion counts. */
interface Spec {
  readonly cron?: string | undefined;
  readonly calendar?: string | undefined;
  readonly named?: string | undefined;
  readonly except?: readonly Spec[] | undefined;
}

/**
 * Holds a schedule to its bounds, so that what one search has to ask stays small.
 * @throws `INVALID_SCHEDULE`
 */
export function checkSize({ any, ...whole }: Spec & { readonly any?: readonly Spec[] | undefined }): void {
  const members = any ?? [whole];
  const shared = any === undefined ? [] : (whole.except ?? []);
  const fault =
    tooMany(members, shared) ??
    tooLong([...members, ...members.flatMap(exclusions), ...shared]) ??
    tooNamed(members, shared);
  if (fault === undefined) return;
  const [what, remedy] = fault;
  throw new CarillonError("INVALID_SCHEDULE", what, {
    field: any ? "schedule.any" : "schedule.except",
    remedy,
  });
}

type Fault = readonly [what: string, remedy: string] | undefined;

/** Of lists whose items may still be anything. */
export function tooMany(members: readonly unknown[], shared: readonly unknown[] = []): Fault {
  const specs = members.reduce<number>((sum, member) => sum + 1 + exclusions(member).length, shared.length);
  if (specs <= MAX_SPECS) return undefined;
  return [`There are ${specs} members and exclusions.`, `Use at most ${MAX_SPECS} in all.`];
}

function exclusions(member: unknown): readonly Spec[] {
  const except = (member as Spec | null)?.except;
  return Array.isArray(except) ? except : [];
}

function tooLong(specs: readonly Spec[]): Fault {
  // Longer ones are refused by themselves.
  const length = ({ cron, calendar }: Spec) =>
    Math.min((cron ?? calendar ?? "").length, MAX_EXPRESSION_LENGTH);
  const text = specs.reduce((sum, spec) => sum + length(spec), 0);
  if (text <= MAX_TEXT) return undefined;
  return [`The expressions have ${text} characters together.`, `Use at most ${MAX_TEXT}, or several tasks.`];
}

function tooNamed(members: readonly Spec[], shared: readonly Spec[]): Fault {
  const named = (specs: readonly Spec[]) => specs.filter((spec) => spec.named !== undefined).length;
  const times = named(members.flatMap(exclusions)) + members.length * named(shared);
  if (times <= MAX_NAMED) return undefined;
  return [
    `Its members name calendars ${times} times, those of the union counted for each member.`,
    `Use at most ${MAX_NAMED}.`,
  ];
}
