import { CarillonError } from "../errors.js";
import { type Bounds, bounded, boundsOf, intersect } from "./bounds.js";
import { within } from "./error-path.js";
import { ExcludingSchedule, type NamedExcluder } from "./exclude/excluding-schedule.js";
import type { Surroundings } from "./exclude/exclusion.js";
import { isNamed } from "./exclude/named.js";
import { exclusionKindOf, readExclusions } from "./exclude/read.js";
import { DelayAfterFinish, delayOf } from "./interval/delay.js";
import type { EveryInterval } from "./interval/every-interval.js";
import { kindOf } from "./kinds/index.js";
import { parseInstant } from "./text/instant.js";
import type { Timetable } from "./timetable.js";
import type {
  CompiledSchedule,
  DelaySchedule,
  Limited,
  Schedule,
  ScheduleContext,
  ScheduleExclusion,
  SimpleSchedule,
  UnionSchedule,
} from "./types.js";
import { Union } from "./union.js";

/** One member of a schedule: the schedule itself, or a member of its union. */
export interface Member {
  readonly timetable: Timetable;
  /** Within its bounds, before exclusions. */
  readonly before: CompiledSchedule;
  readonly excluders: readonly NamedExcluder[];
  readonly compiled: CompiledSchedule;
  /** Present if there are exclusions, except those of a delay. */
  readonly excluding?: ExcludingSchedule;
}

const NOTHING: ScheduleContext = {};

/**
 * Compiles a schedule. Compile once and keep the result: `next` then takes microseconds.
 *
 * A search is bounded. If exclusions remove more consecutive times than it passes over, it returns undefined, as if no
 * time was left; `lintSchedule` warns about this.
 * @param seed of the task, from `seedOf`; `H` in a cron expression derives its values from it, always the same
 * @param context calendars that the schedule refers to by name; compile again when these change
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

/** Compiles like `compileSchedule`, but treats calendars that the context does not have as empty. */
export function compileLenient(
  schedule: Schedule,
  seed = "",
  context: ScheduleContext = NOTHING,
): CompiledSchedule {
  return compileWith(schedule, { seed, context, lenient: true });
}

function compileWith(schedule: Schedule, around: Surroundings): CompiledSchedule {
  const members = membersOf(schedule, around);
  return members.length === 1 ? members[0]!.compiled : new Union(members.map(({ compiled }) => compiled));
}

export function membersOf(schedule: Schedule, around: Surroundings): Member[] {
  if (typeof schedule !== "object" || schedule === null)
    throw new CarillonError("INVALID_SCHEDULE", "The schedule is not an object.", { field: "schedule" });
  if ("any" in schedule) return unionMembers(schedule, around);
  const delay = delayOf(schedule);
  if (delay !== undefined) return [delayMember(schedule, delay, around)];
  const timetable = kindOf(schedule).compile(schedule, around.seed);
  const excluders = readExclusions(schedule.except ?? [], around, "schedule")(timetable);
  return [memberOf(timetable, boundsOf(schedule), excluders, 1)];
}

function delayMember(schedule: Limited, delay: number, around: Surroundings): Member {
  const bounds = boundsOf(schedule);
  const before = new DelayAfterFinish(delay, bounds);
  const timetable = { compiled: before, zone: "UTC", grain: 1 };
  const exclusions = readExclusions(schedule.except ?? [], around, "schedule");
  // The times that follow one finish are an interval.
  const left = (times: EveryInterval) =>
    new ExcludingSchedule(
      bounded(times, bounds),
      exclusions({ ...timetable, compiled: times, grain: times.grain }),
    );
  return {
    timetable,
    before,
    excluders: exclusions(timetable),
    compiled: new DelayAfterFinish(delay, bounds, left),
  };
}

function unionMembers(schedule: UnionSchedule, around: Surroundings): Member[] {
  const all = boundsOf(schedule);
  const shared = readExclusions(schedule.except ?? [], around, "schedule");
  return schedule.any.map((member, i) => {
    const path = `schedule.any[${i}]`;
    const timetable = within(path, () => kindOf(member).compile(member, around.seed));
    const bounds = intersect(all, boundsOf(member, path));
    const own = readExclusions(member.except ?? [], around, path)(timetable);
    return memberOf(timetable, bounds, [...own, ...shared(timetable)], schedule.any.length);
  });
}

/** @param share see `ExcludingSchedule` */
function memberOf(
  timetable: Timetable,
  bounds: Bounds,
  excluders: readonly NamedExcluder[],
  share: number,
): Member {
  const before = bounded(timetable.compiled, bounds);
  if (excluders.length === 0) return { timetable, before, excluders, compiled: before };
  const excluding = new ExcludingSchedule(before, excluders, share);
  return { timetable, before, excluders, compiled: excluding, excluding };
}

/**
 * Whether a member has no time at all, past times included: `0 0 31 2 *`, or a local time that a zone skipped. False for one
 * whose times are all past.
 * @param exclusions of the whole schedule
 */
export function isNever({ compiled }: Member, exclusions: readonly ScheduleExclusion[]): boolean {
  if (compiled.next(Number.NEGATIVE_INFINITY) !== undefined) return false;
  // A search may give up if decades of early times are excluded: the remaining times may be at the other end,
  if (compiled.latest(Number.POSITIVE_INFINITY) !== undefined) return false;
  // or after the end of an exclusion that takes everything until then.
  const ends = exclusions.flatMap(({ end }) => (end === undefined ? [] : [parseInstant(end, "end")]));
  return ends.length === 0 || compiled.next(Math.max(...ends)) === undefined;
}

/** Whether its times depend on the seed: only for `H` in a cron expression. */
export function usesSeed(schedule: Schedule): boolean {
  if ("manual" in schedule) return false;
  const members = "any" in schedule ? schedule.any : [schedule];
  const seeded = (spec: SimpleSchedule | DelaySchedule | ScheduleExclusion) =>
    exclusionKindOf(spec).usesSeed?.(spec) ?? false;
  return members.some(seeded) || exclusionsOf(schedule).some(seeded);
}

/** The shared calendars that a schedule refers to: when one changes, it has to be compiled again. */
export function calendarsOf(schedule: Schedule): string[] {
  const names = exclusionsOf(schedule).flatMap((spec) => (isNamed(spec) ? [spec.named] : []));
  return [...new Set(names)].sort();
}

export function exclusionsOf(schedule: Schedule): ScheduleExclusion[] {
  const members = "any" in schedule ? [schedule, ...schedule.any] : [schedule];
  return members.flatMap(({ except = [] }) => except);
}
