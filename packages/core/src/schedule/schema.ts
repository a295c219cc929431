import { z } from "zod";
import { CarillonError, quote } from "../errors.js";
import { boundsOf } from "./bounds.js";
import { compileLenient } from "./compile.js";
import { within } from "./error-path.js";
import { EXCLUSION_KINDS } from "./exclude/read.js";
import type { BoundsInput, ScheduleInput } from "./input.js";
import { delayOf } from "./interval/delay.js";
import { parseJitter } from "./jitter.js";
import { KINDS } from "./kinds/index.js";
import type { ExclusionKind, KindFields } from "./kinds/kind.js";
import { CHOICE, type ExclusionShape, type MemberShape, type Shape, shape } from "./shape.js";
import { checkSize } from "./size.js";
import { durationText } from "./text/duration.js";
import { list } from "./text/english.js";
import { storedInstant } from "./text/instant.js";
import type {
  Limited,
  Schedule,
  ScheduleBounds,
  ScheduleExclusion,
  SimpleSchedule,
  UnionSchedule,
  WholeSchedule,
} from "./types.js";

const MAX_RUNS = 1_000_000_000;
const EXCLUSION_CHOICE = `An exclusion has exactly one of ${list(
  EXCLUSION_KINDS.map(({ key }) => key),
  "or",
)}`;

/** Schedules by what was given: thousands of tasks share a few dozen, which are checked once, and are one frozen object. */
const known = new Map<string, Schedule>();
const MOST_KNOWN = 2_000;

/**
 * Schema of a schedule from outside: exactly one syntax or a union, no unknown keys, every expression compiled
 * once. The result is normalised (spaces in cron, zone names, times in UTC) and plain JSON; missing fields are not
 * added. Issues carry the path of the field and, in `params.code`, the `CarillonError` code. A schedule that can never
 * fire passes (`reviewSchedule` finds it), and so does one that names calendars, which are not looked up here.
 */
export const scheduleSchema: z.ZodType<Schedule, ScheduleInput> = (
  shape as unknown as z.ZodType<Shape, ScheduleInput>
).transform((input, context): Schedule => {
  const text = JSON.stringify(input);
  const same = known.get(text);
  if (same) return same;
  try {
    checkSize(input);
    const schedule = frozen(normalise(input));
    compileLenient(schedule);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(text, schedule);
    return schedule;
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    context.issues.push({
      code: "custom",
      input,
      path: pathOf(error.field),
      // The path already names the field.
      message: error.field === undefined ? error.message : error.message.slice(error.field.length + 2),
      params: { code: error.code },
    });
    return z.NEVER;
  }
});

function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) frozen(inner);
  return Object.freeze(value);
}

/** `schedule.any[2].cron` without its root. */
function pathOf(field = "schedule"): Array<string | number> {
  const parts = field.match(/[^.[\]]+/g)?.slice(1) ?? [];
  return parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

function normalise(given: Shape): Schedule {
  if (given.manual !== undefined) refuseBeside(given, "manual");
  const { any, anchor, jitter, maxRuns, ...input } = given;
  const common = whole({ jitter, maxRuns });
  if (any !== undefined) return { ...union(any, { ...input, anchor }), ...common };
  refuse({ anchor }, "anchor", input.every !== undefined, "every");
  const schedule = { ...member(input), ...(anchor === "finish" ? { anchor } : {}), ...common } as Schedule;
  delayOf(schedule);
  return schedule;
}

function whole({ jitter, maxRuns }: Pick<Shape, keyof WholeSchedule>): WholeSchedule {
  if (jitter !== undefined) parseJitter(jitter);
  if (maxRuns !== undefined && !(Number.isInteger(maxRuns) && maxRuns >= 1 && maxRuns <= MAX_RUNS)) {
    throw new CarillonError("INVALID_SCHEDULE", `${quote(maxRuns)} is not a whole number of runs.`, {
      field: "schedule.maxRuns",
      remedy: `Give 1 to ${MAX_RUNS}, or leave it out for no limit.`,
    });
  }
  return {
    ...(jitter === undefined ? {} : { jitter: durationText(jitter) }),
    ...(maxRuns === undefined ? {} : { maxRuns }),
  };
}

function union(any: MemberShape[], input: Omit<Shape, "any" | keyof WholeSchedule>): UnionSchedule {
  const { start, end, except, ...others } = input;
  const extra = Object.entries(others).find(([, value]) => value !== undefined)?.[0];
  if (extra !== undefined) {
    const [where, remedy] =
      extra === "anchor"
        ? ["an every schedule that stands alone", "Leave it out here."]
        : ["the members of a union", "Write it inside of any."];
    throw new CarillonError("INVALID_SCHEDULE", `${extra} belongs to ${where}.`, {
      field: `schedule.${extra}`,
      remedy,
    });
  }
  if (any.length === 0) {
    throw new CarillonError("INVALID_SCHEDULE", "The union is empty.", {
      field: "schedule.any",
      remedy: "Give at least one schedule.",
    });
  }
  const members = any.map((one, i) => within(`schedule.any[${i}]`, () => member(one)));
  return { any: members, ...limits({ start, end, except }) };
}

function refuseBeside(given: Shape, own: keyof Shape): void {
  const extra = Object.entries(given).find(([field, value]) => field !== own && value !== undefined)?.[0];
  if (extra === undefined) return;
  throw new CarillonError("INVALID_SCHEDULE", `${own} stands alone.`, {
    field: `schedule.${extra}`,
    remedy: `Leave out ${extra}, or ${own}.`,
  });
}

function member(input: MemberShape): SimpleSchedule {
  return { ...ownFields(input, KINDS, CHOICE), ...limits(input) } as SimpleSchedule;
}

function ownFields(
  input: ExclusionShape | MemberShape,
  kinds: readonly ExclusionKind[],
  choice: string,
): object {
  const kind = exactlyOne(input, kinds, choice);
  const fields: KindFields = input;
  for (const field of ["timezone", "origin", "dst", "dialect"] as const) {
    const takers = kinds.filter(({ takes }) => takes.includes(field)).map(({ key }) => key);
    refuse(fields, field, kind.takes.includes(field), list(takers));
  }
  return kind.normalise(input[kind.key as keyof typeof input], fields);
}

function exactlyOne(input: object, kinds: readonly ExclusionKind[], choice: string): ExclusionKind {
  const given = kinds.filter(({ key }) => (input as Record<string, unknown>)[key] !== undefined);
  if (given.length === 1) return given[0]!;
  const found =
    given.length === 0 ? "none is given" : `${given.map(({ key }) => key).join(" and ")} are given`;
  throw new CarillonError("INVALID_SCHEDULE", `${choice}; ${found}.`, { field: "schedule" });
}

function refuse<T extends object>(input: T, key: keyof T & string, allowed: boolean, where: string): void {
  if (allowed || input[key] === undefined) return;
  throw new CarillonError("INVALID_SCHEDULE", `${key} belongs to ${where}.`, {
    field: `schedule.${key}`,
    remedy: "Leave it out here.",
  });
}

function limits(input: BoundsInput & { except?: ExclusionShape[] | undefined }): Limited {
  const except = (input.except ?? []).map((spec, i) =>
    within(`schedule.except[${i}]`, () => exclusion(spec)),
  );
  return { ...bounds(input), ...(except.length === 0 ? {} : { except }) };
}

function bounds(input: BoundsInput): ScheduleBounds {
  boundsOf(input);
  const { start, end } = input;
  return {
    ...(start === undefined ? {} : { start: storedInstant(start, "schedule.start") }),
    ...(end === undefined ? {} : { end: storedInstant(end, "schedule.end") }),
  };
}

function exclusion(input: ExclusionShape): ScheduleExclusion {
  const fields = ownFields(input, EXCLUSION_KINDS, EXCLUSION_CHOICE);
  return { ...fields, ...bounds(input) } as ScheduleExclusion;
}
