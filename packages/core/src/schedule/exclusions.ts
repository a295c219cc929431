import { CarillonError, quote } from "../errors.js";
import { boundsOf, UNBOUNDED } from "./bounds.js";
import { calendarFields } from "./calendar-fields.js";
import { Coverage, type TimePattern } from "./coverage.js";
import { Dates, FieldDays } from "./day-set.js";
import {
  BoundedExcluder,
  DayExcluder,
  type Excluder,
  FieldExcluder,
  TimeExcluder,
  type WallOf,
} from "./excluder.js";
import type { NamedExcluder } from "./excluding.js";
import { within } from "./fault.js";
import type { Fields } from "./fields.js";
import { namedCalendar } from "./named.js";
import { plainSchedule } from "./plain.js";
import { planOf } from "./plan.js";
import type { ScheduleContext, ScheduleExclusion } from "./types.js";
import { zoneOf } from "./zone.js";
import { isUtc, requireZone } from "./zone-names.js";

/** What exclusions must know of the schedule that they are taken from. */
export interface Target {
  readonly zone: string;
  /** Undefined: the plain wall clock of an instant. */
  readonly wallOf: WallOf | undefined;
  readonly pattern: TimePattern | undefined;
  /** Whether it runs times late that a gap skipped. */
  readonly late: boolean;
}

/** What to resolve names and `H` with. */
export interface Surroundings {
  readonly seed: string;
  readonly context: ScheduleContext;
  /** Leave out calendars that are not known here, rather than refuse them. */
  readonly lenient: boolean;
}

/** @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION` */
export function excludersOf(
  specs: readonly ScheduleExclusion[],
  target: Target,
  around: Surroundings,
  path: string,
): NamedExcluder[] {
  return specs.flatMap((spec, i) =>
    within(`${path}.except[${i}]`, () => {
      const bounds = boundsOf(spec);
      const label = "named" in spec ? spec.named : "cron" in spec ? spec.cron : textOf(spec);
      return excluderOf(spec, target, around).map((excluder) => ({
        excluder: bounds === UNBOUNDED ? excluder : new BoundedExcluder(excluder, bounds),
        label,
      }));
    }),
  );
}

function textOf(spec: Exclude<ScheduleExclusion, { named: string } | { cron: string }>): string {
  if ("calendar" in spec) return spec.calendar;
  return "every" in spec ? `every ${spec.every}` : String(spec.at);
}

function excluderOf(spec: ScheduleExclusion, target: Target, around: Surroundings): Excluder[] {
  if ("named" in spec) return namedExcluders(spec, target, around);
  if ("at" in spec) return [new TimeExcluder(plainSchedule({ at: spec.at }).compiled)];
  const timezone = spec.timezone ?? target.zone;
  if ("every" in spec) {
    // A fixed interval has no zone to inherit.
    const words = spec.timezone === undefined && /^\d+ |^P\d+[YM]/.test(spec.every);
    return [new TimeExcluder(plainSchedule(words ? { ...spec, timezone } : spec).compiled)];
  }
  const plan = planOf({ ...spec, timezone }, around.seed)!;
  return [fieldExcluder(plan.fields, plan.event?.daysOnly ?? false, plan.zone, target)];
}

function namedExcluders(
  { named, timezone }: { named: string; timezone?: string | undefined },
  target: Target,
  { context, lenient }: Surroundings,
): Excluder[] {
  const zone = timezone === undefined ? target.zone : requireZone(timezone, "schedule.timezone");
  const entries = context.calendars?.get(named);
  if (entries === undefined) {
    if (lenient) return [];
    throw new CarillonError("INVALID_SCHEDULE", `There is no calendar ${quote(named)}.`, {
      field: "schedule.named",
      remedy: "Shared calendars cannot be stored yet: write its days into `except` as calendar events.",
    });
  }
  const calendar = namedCalendar(entries, `calendars.${named}`);
  const excluders: Excluder[] = calendar.rules.map(({ event }) =>
    fieldExcluder(calendarFields(event), event.daysOnly ?? false, event.zone ?? zone, target),
  );
  if (calendar.dates.size === 0) return excluders;
  return [new DayExcluder(new Dates(calendar.dates), tables(zone), wallOf(zone, target)), ...excluders];
}

function fieldExcluder(written: Fields, daysOnly: boolean, zone: string, target: Target): Excluder {
  const fields = timeless(written);
  const days = new FieldDays(fields);
  const same = sameClock(zone, target.zone);
  if (daysOnly) return new DayExcluder(days, tables(zone), wallOf(zone, target));
  const covers = new Coverage(fields, target.pattern, same, target.late);
  return new FieldExcluder(fields, days, tables(zone), wallOf(zone, target), covers);
}

/** The years of a syntax bound what it fires, not what it takes away. */
function timeless(fields: Fields): Fields {
  return fields.years === undefined ? { ...fields, firstYear: -271_822, lastYear: 275_761 } : fields;
}

function tables(zone: string) {
  return isUtc(zone) ? undefined : zoneOf(zone);
}

function sameClock(a: string, b: string): boolean {
  return a === b || (isUtc(a) && isUtc(b));
}

function wallOf(zone: string, target: Target): WallOf {
  if (target.wallOf !== undefined && sameClock(zone, target.zone)) return target.wallOf;
  const table = tables(zone);
  return table === undefined ? (time) => time : (time) => time + table.at(time).offset;
}
