import { CarillonError } from "../errors.js";
import { type Bounds, bounded, boundsOf, intersect } from "./bounds.js";
import { patternOfInterval } from "./day-minutes.js";
import { DelayAfterFinish } from "./delay.js";
import { ExcludingSchedule, type NamedExcluder } from "./excluding.js";
import { readExclusions, type Surroundings } from "./exclusions.js";
import { within } from "./fault.js";
import { parseInstant } from "./instant.js";
import { type Plain, plainSchedule } from "./plain.js";
import type { EveryInterval } from "./simple.js";
import type {
  CompiledSchedule,
  Limited,
  Schedule,
  ScheduleContext,
  ScheduleExclusion,
  UnionSchedule,
} from "./types.js";
import { Union } from "./union.js";
import { delayOf } from "./whole.js";

/** One member of a schedule: all there is, or one of a union. */
export interface Part {
  readonly plain: Plain;
  /** Within its bounds, before exclusions. */
  readonly before: CompiledSchedule;
  readonly excluders: readonly NamedExcluder[];
  readonly compiled: CompiledSchedule;
}

const NOTHING: ScheduleContext = {};

/**
 * A schedule made ready to answer. Compile once and keep it: `next` then takes microseconds.
 *
 * An exclusion that takes every time answers undefined, after a bounded search.
 * @param seed the task's id; `H` in a cron expression derives its values from it, the same for ever
 * @param context what the schedule refers to by name; compile again when that changes
 * @throws `INVALID_SCHEDULE` (a calendar that the context does not have included), `INVALID_TIMEZONE`,
 * `INVALID_DURATION`
 */
export function compileSchedule(
  schedule: Schedule,
  seed = "",
  context: ScheduleContext = NOTHING,
): CompiledSchedule {
  return compileWith(schedule, { seed, context, lenient: false });
}

/** For questions about a schedule itself, without the calendars that it names. */
export function compileLenient(
  schedule: Schedule,
  seed = "",
  context: ScheduleContext = NOTHING,
): CompiledSchedule {
  return compileWith(schedule, { seed, context, lenient: true });
}

function compileWith(schedule: Schedule, around: Surroundings): CompiledSchedule {
  const parts = partsOf(schedule, around);
  return parts.length === 1 ? parts[0]!.compiled : new Union(parts.map(({ compiled }) => compiled));
}

export function partsOf(schedule: Schedule, around: Surroundings): Part[] {
  if (typeof schedule !== "object" || schedule === null) {
    throw new CarillonError("INVALID_SCHEDULE", "A schedule is an object.", { field: "schedule" });
  }
  if ("any" in schedule) return unionParts(schedule, around);
  const delay = delayOf(schedule);
  if (delay !== undefined) return [delayPart(schedule, delay, around)];
  const plain = plainSchedule(schedule, around.seed, schedule.except !== undefined);
  const excluders = readExclusions(schedule.except ?? [], around, "schedule")(plain);
  return [part(plain, boundsOf(schedule), excluders, 1)];
}

function delayPart(schedule: Limited, delay: number, around: Surroundings): Part {
  const bounds = boundsOf(schedule);
  const before = new DelayAfterFinish(delay, bounds);
  const plain = { compiled: before, zone: "UTC", pattern: () => undefined, late: false };
  const exclusions = readExclusions(schedule.except ?? [], around, "schedule");
  const excluders = exclusions(plain);
  // Where the times of one finish are whole seconds, it is known which of them an exclusion has.
  const taken = (times: EveryInterval) => {
    const pattern = patternOfInterval(times);
    const target = { ...plain, compiled: times, pattern: () => pattern };
    const rest = pattern === undefined ? excluders : exclusions(target);
    return new ExcludingSchedule(bounded(times, bounds), target, rest);
  };
  return { plain, before, excluders, compiled: new DelayAfterFinish(delay, bounds, taken) };
}

function unionParts(schedule: UnionSchedule, around: Surroundings): Part[] {
  const all = boundsOf(schedule);
  const shared = readExclusions(schedule.except ?? [], around, "schedule");
  return schedule.any.map((member, i) => {
    const path = `schedule.any[${i}]`;
    const plain = within(path, () => plainSchedule(member, around.seed, true));
    const bounds = intersect(all, boundsOf(member, path));
    const own = readExclusions(member.except ?? [], around, path)(plain);
    return part(plain, bounds, [...own, ...shared(plain)], schedule.any.length);
  });
}

/** @param share see `ExcludingSchedule` */
function part(plain: Plain, bounds: Bounds, excluders: readonly NamedExcluder[], share: number): Part {
  const before = bounded(plain.compiled, bounds);
  const compiled = excluders.length === 0 ? before : new ExcludingSchedule(before, plain, excluders, share);
  return { plain, before, excluders, compiled };
}

/**
 * Whether no time ever matches, past times included: `0 0 31 2 *`, or a local time that a zone skipped. A
 * schedule whose times are all past did fire once, so this is false for it. Calendars that the context does not
 * have are taken for empty.
 */
export function neverFires(schedule: Schedule, context: ScheduleContext = NOTHING): boolean {
  return isNever(compileLenient(schedule, "", context), exclusionsOf(schedule));
}

/** Whether nothing is left of a schedule, or of a member of one, from which these exclusions are taken. */
export function isNever(compiled: CompiledSchedule, exclusions: readonly ScheduleExclusion[]): boolean {
  if (compiled.next(Number.NEGATIVE_INFINITY) !== undefined) return false;
  // A search may give up where decades of early times are taken away: what is left may be at the other end,
  if (compiled.latest(Number.POSITIVE_INFINITY) !== undefined) return false;
  // or after the end of an exclusion that takes everything until then.
  const ends = exclusions.flatMap(({ end }) => (end === undefined ? [] : [parseInstant(end, "end")]));
  return ends.length === 0 || compiled.next(Math.max(...ends)) === undefined;
}

/** Whether the seed makes a difference to its times: only for `H` in a cron expression. */
export function usesSeed(schedule: Schedule): boolean {
  const members = "any" in schedule ? schedule.any : [schedule];
  return [...members, ...exclusionsOf(schedule)].some(
    (spec) => "cron" in spec && /h/i.test(String(spec.cron)),
  );
}

/** The shared calendars that a schedule refers to: when one changes, it has to be compiled again. */
export function calendarsOf(schedule: Schedule): string[] {
  const names = exclusionsOf(schedule).flatMap((spec) => ("named" in spec ? [spec.named] : []));
  return [...new Set(names)].sort();
}

/** All that are in a schedule, those of its members included. */
export function exclusionsOf(schedule: Schedule): ScheduleExclusion[] {
  const members = "any" in schedule ? [schedule, ...schedule.any] : [schedule];
  return members.flatMap(({ except = [] }) => except);
}
