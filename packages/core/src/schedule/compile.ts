import { CarillonError } from "../errors.js";
import { bounded, boundsOf, intersect } from "./bounds.js";
import { DelayAfterFinish } from "./delay.js";
import { ExcludingSchedule, type NamedExcluder } from "./excluding.js";
import { excludersOf, type Surroundings } from "./exclusions.js";
import { within } from "./fault.js";
import { type Plain, plainSchedule } from "./plain.js";
import type {
  CompiledSchedule,
  DelaySchedule,
  Schedule,
  ScheduleContext,
  ScheduleExclusion,
  SimpleSchedule,
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
  if ("any" in schedule) {
    return schedule.any.map((member, i) =>
      partOf(member, { path: `schedule.any[${i}]`, among: schedule.any.length, all: schedule }, around),
    );
  }
  const delay = delayOf(schedule);
  if (delay !== undefined) return [delayPart(schedule, delay, around)];
  return [partOf(schedule, { path: "schedule", among: 1 }, around)];
}

function delayPart(schedule: SimpleSchedule | DelaySchedule, delay: number, around: Surroundings): Part {
  const bounds = boundsOf(schedule);
  const before = new DelayAfterFinish(delay, bounds, []);
  const target = { zone: "UTC", wallOf: undefined, pattern: undefined, late: false };
  const excluders = excludersOf(schedule.except ?? [], target, around, "schedule");
  return {
    plain: { compiled: before, zone: target.zone, late: false },
    before,
    excluders,
    compiled: excluders.length === 0 ? before : new DelayAfterFinish(delay, bounds, excluders),
  };
}

/** Where a member stands: `all` is the union that it is part of. */
interface Place {
  readonly path: string;
  readonly among: number;
  readonly all?: Schedule & { any: SimpleSchedule[] };
}

function partOf(schedule: SimpleSchedule, { path, among, all }: Place, around: Surroundings): Part {
  const specs: Array<[path: string, specs: ScheduleExclusion[]]> = [];
  if (schedule.except !== undefined) specs.push([path, schedule.except]);
  if (all?.except !== undefined) specs.push(["schedule", all.except]);
  const asSet = all !== undefined || specs.length > 0;
  const plain = within(path, () => plainSchedule(schedule, around.seed, asSet));
  const own = boundsOf(schedule, path);
  const before = bounded(plain.compiled, all === undefined ? own : intersect(boundsOf(all), own));
  if (specs.length === 0) return { plain, before, excluders: [], compiled: before };
  const target = { zone: plain.zone, wallOf: plain.wallOf, pattern: plain.pattern, late: plain.late };
  const excluders = specs.flatMap(([at, list]) => excludersOf(list, target, around, at));
  const compiled = excluders.length === 0 ? before : new ExcludingSchedule(before, excluders, among);
  return { plain, before, excluders, compiled };
}

/**
 * Whether no time ever matches, past times included: `0 0 31 2 *`, or a local time that a zone skipped. A
 * schedule whose times are all past did fire once, so this is false for it. Calendars that the context does not
 * have are taken for empty.
 */
export function neverFires(schedule: Schedule, context: ScheduleContext = NOTHING): boolean {
  return compileLenient(schedule, "", context).next(Number.NEGATIVE_INFINITY) === undefined;
}

/** Whether the seed makes a difference: only for `H` in a cron expression. */
export function usesSeed(schedule: Schedule): boolean {
  const hashed = (spec: object) => "cron" in spec && /h/i.test(String(spec.cron));
  const inside = (spec: SimpleSchedule) => hashed(spec) || (spec.except ?? []).some(hashed);
  if (!("any" in schedule)) return inside(schedule);
  return schedule.any.some(inside) || (schedule.except ?? []).some(hashed);
}

/** The shared calendars that a schedule refers to: when one changes, it has to be compiled again. */
export function calendarsOf(schedule: Schedule): string[] {
  const members = "any" in schedule ? [schedule, ...schedule.any] : [schedule];
  const names = members.flatMap(({ except = [] }) =>
    except.flatMap((spec) => ("named" in spec ? [spec.named] : [])),
  );
  return [...new Set(names)].sort();
}
