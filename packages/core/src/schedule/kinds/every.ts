import { CarillonError } from "../../errors.js";
import { formatInstant } from "../../words/times.js";
import { civilFromDays, DAY, daysInMonth, modulo } from "../civil.js";
import { TimesExcluder } from "../exclude/excluder.js";
import type { Exclusion } from "../exclude/exclusion.js";
import { clockOf } from "../exclude/on-clock.js";
import {
  CalendarInterval,
  type CalendarStep,
  formatCalendarStep,
  monthOf,
  parseCalendarStep,
} from "../interval/calendar-interval.js";
import { delayOf } from "../interval/delay.js";
import { EveryInterval } from "../interval/every-interval.js";
import { durationText, formatDuration, parseDuration } from "../text/duration.js";
import { parseInstant, storedInstant } from "../text/instant.js";
import type { DelaySchedule, EverySchedule, Schedule } from "../types.js";
import { requireZone } from "../zone/names.js";
import { segmentAt, zoneOf } from "../zone/offsets.js";
import { DURATION } from "./expression.js";
import { type Kind, type Role, storedZone, type Warn } from "./kind.js";

const NO_LEAP_YEAR = 2_001;

/** An interval: a fixed number of ms, or a step of the calendar on a zone's clock. */
interface IntervalPlan {
  readonly interval: number | CalendarStep;
  /** Undefined: the epoch. */
  readonly origin: number | undefined;
  readonly zone: string;
  readonly canonical: string;
}

/** Intervals: at a fixed rate, or with `anchor: "finish"` from the end of each run. */
export const every: Kind<EverySchedule | DelaySchedule, typeof DURATION> = {
  key: "every",
  example: "10m",
  takes: ["timezone", "origin"],
  shape: DURATION,
  normalise(value, fields) {
    const zone = storedZone(fields);
    const text = durationText(value);
    if (typeof value === "number") parseDuration(value, "schedule.every");
    if (fields.origin === undefined) return { every: text, ...zone };
    return { every: text, origin: storedInstant(fields.origin, "schedule.origin"), ...zone };
  },
  compile(schedule) {
    const plan = planOf(schedule);
    const compiled = intervalSchedule(plan);
    return { compiled, zone: plan.zone, grain: compiled.grain };
  },
  exclude: exclusionOf,
  label: (spec) => `every ${spec.every}`,
  canonical(spec, _seed, role) {
    const delay = delayOf(spec);
    return delay === undefined ? canonicalText(spec, role) : `${formatDuration(delay)} after finish`;
  },
  describe(spec, _seed, role) {
    const delay = delayOf(spec);
    if (delay !== undefined) return `every ${formatDuration(delay)} after the run before has finished`;
    const { interval, origin, zone, canonical } = planOf(spec);
    const from = origin === undefined ? undefined : formatInstant(origin);
    if (typeof interval === "number") return `every ${canonical}, counted from ${from ?? "the Unix epoch"}`;
    const clock = role === "exclusion" && spec.timezone === undefined ? "" : ` on the clock of ${zone}`;
    return `every ${canonical}, counted from ${from ?? "1970-01-01 00:00"}${clock}`;
  },
  lint(schedule, warn) {
    const plan = planOf(schedule);
    if (typeof plan.interval !== "number") {
      lintMonths(plan, plan.interval, warn);
      return;
    }
    if (plan.interval <= 1_000)
      warn("EACH_SECOND", "It fires each second or more often.", "Give a longer interval, such as 1m.");
  },
};

/** Distance of all consecutive times of a schedule, in ms. Undefined: they may differ. */
export function fixedInterval(schedule: Schedule): number | undefined {
  if (!("every" in schedule) || schedule.except !== undefined || delayOf(schedule) !== undefined)
    return undefined;
  const { interval } = planOf(schedule);
  return typeof interval === "number" ? interval : undefined;
}

/** @throws `INVALID_DURATION`, `INVALID_SCHEDULE`, `INVALID_TIMEZONE` */
function planOf({ every: text, timezone, ...rest }: EverySchedule | DelaySchedule): IntervalPlan {
  const zone = requireZone(timezone ?? "UTC", "schedule.timezone");
  const origin = rest.origin === undefined ? undefined : parseInstant(rest.origin, "schedule.origin");
  const step = parseCalendarStep(text, "schedule.every");
  if (step) return { interval: step, origin, zone, canonical: formatCalendarStep(step) };
  const interval = parseDuration(text, "schedule.every");
  if (timezone === undefined) return { interval, origin, zone, canonical: formatDuration(interval) };
  if (interval % DAY !== 0) {
    throw new CarillonError(
      "INVALID_SCHEDULE",
      "timezone belongs to cron, calendar, and intervals of whole days, weeks, months and years.",
      { field: "schedule.timezone", remedy: "Leave it out here." },
    );
  }
  // With a zone, `1d` is a day of its calendar, which may have 23 h.
  const days: CalendarStep = { unit: "day", count: interval / DAY };
  return { interval: days, origin, zone, canonical: formatCalendarStep(days) };
}

/** An interval counted on the clock of a zone, or by elapsed time alone. */
function intervalSchedule({ interval, origin, zone }: Omit<IntervalPlan, "canonical">) {
  if (typeof interval === "number") return new EveryInterval(interval, origin ?? 0);
  return new CalendarInterval(interval, origin, zoneOf(zone));
}

function exclusionOf(spec: EverySchedule | DelaySchedule): Exclusion {
  const plan = planOf(spec);
  const times = (zone: string) => intervalSchedule({ ...plan, zone });
  // A fixed interval is counted in UTC; a calendar interval without a zone, on the clock of the schedule.
  const own = typeof plan.interval === "number" ? "UTC" : spec.timezone && plan.zone;
  return {
    wholeDays: false,
    on(target) {
      const all = times(clockOf(own, target).name);
      return [new TimesExcluder(all, all instanceof EveryInterval ? all.hasAllFrom(target) : undefined)];
    },
    times: (zone) => times(own ?? zone),
  };
}

function canonicalText(spec: EverySchedule | DelaySchedule, role: Role): string {
  const { interval, origin, zone, canonical } = planOf(spec);
  const fixed = typeof interval === "number";
  // Without a zone, an exclusion is read on the clock of its schedule.
  const zoned = role !== "exclusion" || spec.timezone !== undefined;
  // An interval of the calendar counts from the first midnight of 1970 on its clock, which is the epoch only in UTC.
  const usual = fixed || (zoned && zone === "UTC") ? 0 : undefined;
  const from = origin === undefined || origin === usual ? "" : ` from ${formatInstant(origin)}`;
  // For an exclusion, an explicit UTC is shown too.
  const saysZone = zone === "UTC" ? role === "exclusion" && zoned : !fixed;
  return canonical + from + (saysZone ? ` in ${zone}` : "");
}

function lintMonths({ origin, zone }: IntervalPlan, { unit, count }: CalendarStep, warn: Warn): void {
  if (unit !== "month" || origin === undefined) return;
  const wall = origin + segmentAt(zoneOf(zone), origin).offset;
  const day = Math.floor(wall / DAY);
  const date = civilFromDays(day) & 31;
  const months = Array.from({ length: 12 }, (_, n) => modulo(monthOf(day) + n * count, 12) + 1);
  if (months.some((month) => daysInMonth(NO_LEAP_YEAR, month) < date)) {
    const remedy = "For the same day in each month, give an origin on day 28 or earlier.";
    warn("DAY_MISSING", `Months without a day ${date} have their last day instead.`, remedy);
  }
}
