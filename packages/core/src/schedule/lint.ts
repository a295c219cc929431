import { HALF, membersOf } from "./bits.js";
import { monthOf } from "./calendar-interval.js";
import { civilFromDays, DAY, daysInMonth, modulo } from "./civil.js";
import { exclusionsOf, isNever, neverFires, partsOf } from "./compile.js";
import { namesTimes } from "./exclusion-times.js";
import type { Fields } from "./fields.js";
import { parseJitter } from "./jitter.js";
import { type FieldPlan, intervalOf, planOf } from "./plan.js";
import type { Limited, Schedule, ScheduleContext, SimpleSchedule, UnionSchedule } from "./types.js";
import { delayOf } from "./whole.js";
import { segmentAt, zoneOf } from "./zone.js";
import { isUtc } from "./zone-names.js";

export interface ScheduleWarning {
  /**
   * Stable, for programs: `NEVER_FIRES`, `EACH_SECOND`, `EACH_MINUTE_OF_HOUR`, `DAY_UNION`, `ZONE_IGNORED`,
   * `DST_IGNORED`, `DAY_MISSING`, `EXCLUDES_NOTHING`, `EXCLUDES_MOMENTS`, `JITTER_CUT`, `JITTER_IGNORED`.
   */
  readonly code: string;
  readonly message: string;
}

type Warn = (code: string, message: string) => void;

const NO_LEAP_YEAR = 2_001;

/**
 * What is valid but probably not meant. Warnings about a member of a union begin with its place, `any[2]: …`.
 * @throws as `compileSchedule`, except for calendars that the context does not have
 */
export function lintSchedule(schedule: Schedule, context: ScheduleContext = {}): ScheduleWarning[] {
  const warnings: ScheduleWarning[] = [];
  const warn: Warn = (code, message) => warnings.push({ code, message });
  if (neverFires(schedule, context)) warn("NEVER_FIRES", "No date matches: this schedule never fires.");
  const parts = partsOf(schedule, { seed: "", context, lenient: true });
  const zones = parts.map(({ plain }) => plain.zone);
  if ("any" in schedule) {
    const exclusions = exclusionsOf(schedule);
    for (const [i, member] of schedule.any.entries()) {
      const told: Warn = (code, message) => warn(code, `any[${i}]: ${message}`);
      if (isNever(parts[i]!.compiled, exclusions)) told("NEVER_FIRES", "No date matches: it never fires.");
      lintSimple(member, told);
      lintExclusions(member, [zones[i]!], told);
    }
    lintExclusions(schedule, zones, warn);
  } else if (delayOf(schedule) !== undefined) {
    lintExclusions(schedule, zones, warn);
    lintMoments(schedule, warn);
  } else {
    lintSimple(schedule, warn);
    lintExclusions(schedule, zones, warn);
    lintJitter(schedule, warn);
  }
  return warnings;
}

function lintSimple(schedule: SimpleSchedule, warn: Warn): void {
  const plan = planOf(schedule);
  if (plan && isEachSecond(plan.fields)) {
    warn("EACH_SECOND", "It fires each second or more often while it matches; did you mean each minute?");
  }
  if ("every" in schedule) lintEvery(schedule, warn);
  if ("cron" in schedule && plan) lintCron(schedule.cron, plan, warn);
  if ("calendar" in schedule && plan && schedule.timezone !== undefined && plan.zone !== schedule.timezone) {
    warn("ZONE_IGNORED", `The expression's own zone ${plan.zone} counts, not timezone ${schedule.timezone}.`);
  }
  if (plan && "dst" in schedule && schedule.dst !== undefined && isUtc(plan.zone)) {
    warn("DST_IGNORED", "dst says nothing in UTC, whose clock never changes; is a timezone missing?");
  }
}

function isEachSecond({ seconds, subSeconds }: Fields): boolean {
  return subSeconds ? subSeconds.size >= 60 : (seconds.lo & seconds.hi) === HALF;
}

function lintEvery(schedule: SimpleSchedule & { every: string }, warn: Warn): void {
  const { interval, origin, zone } = intervalOf(schedule);
  if (typeof interval === "number") {
    if (interval <= 1_000) warn("EACH_SECOND", "It fires each second or more often.");
    return;
  }
  if (interval.unit !== "month" || origin === undefined) return;
  const wall = origin + segmentAt(zoneOf(zone), origin).offset;
  const day = Math.floor(wall / DAY);
  const date = civilFromDays(day) & 31;
  const months = Array.from({ length: 12 }, (_, n) => modulo(monthOf(day) + n * interval.count, 12) + 1);
  if (months.some((month) => daysInMonth(NO_LEAP_YEAR, month) < date)) {
    warn("DAY_MISSING", `Months without a day ${date} have their last day instead.`);
  }
}

function lintCron(cron: string, plan: FieldPlan, warn: Warn): void {
  if (plan.fields.days.either) {
    const message =
      "Day of month and day of week are both given: cron fires when either matches. For both at once use a calendar schedule, such as Fri *-*-13.";
    warn("DAY_UNION", message);
  }
  const fields = cron.trim().split(/[ \t]+/);
  const [minute, hour] = fields.length === 6 ? fields.slice(1) : fields;
  if (minute === "*" && hour !== undefined && membersOf(plan.fields.hours).length === 1) {
    warn(
      "EACH_MINUTE_OF_HOUR",
      `It fires at each minute of hour ${hour}; for once a day write 0 for the minute.`,
    );
  }
}

/** @param zones those of the schedules that they are taken from */
function lintExclusions({ except = [] }: Limited, zones: readonly string[], warn: Warn): void {
  for (const [i, spec] of except.entries()) {
    if ("named" in spec || zones.some((zone) => namesTimes(spec, zone))) continue;
    warn("EXCLUDES_NOTHING", `except[${i}]: No date matches: it takes nothing away.`);
  }
}

/** A run ends at any millisecond: after it, single times are hardly ever met. */
function lintMoments({ except = [] }: Limited, warn: Warn): void {
  for (const [i, spec] of except.entries()) {
    if ("named" in spec || planOf(spec)?.event?.daysOnly) continue;
    const message = `except[${i}]: It takes single times, which a delay after a run hardly ever meets; name whole days.`;
    warn("EXCLUDES_MOMENTS", message);
  }
}

function lintJitter(schedule: Exclude<Schedule, UnionSchedule>, warn: Warn): void {
  if (schedule.jitter === undefined) return;
  const jitter = parseJitter(schedule.jitter);
  if ("at" in schedule && "part" in jitter) {
    warn("JITTER_IGNORED", "A single time has no gap to another, of which the jitter could be a part.");
  }
  const interval = "every" in schedule ? intervalOf(schedule).interval : undefined;
  if (typeof interval === "number" && "ms" in jitter && jitter.ms > interval) {
    warn("JITTER_CUT", "The jitter is longer than the interval: it ends before the following time.");
  }
}
