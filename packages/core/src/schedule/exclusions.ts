import { CarillonError, quote } from "../errors.js";
import { ALL_SIXTY, type Sixty } from "./bits.js";
import { boundsOf, UNBOUNDED } from "./bounds.js";
import { CalendarInterval } from "./calendar-interval.js";
import { DAY } from "./civil.js";
import { ALL_MINUTES, wholeMinutesOf, wholeMinutesOfInterval } from "./day-minutes.js";
import { type DaySet, EVERY_DAY, FieldDays, hasDay } from "./day-set.js";
import {
  BoundedExcluder,
  type Daily,
  DailyExcluder,
  type Excluder,
  FromOnExcluder,
  type Minutes,
  TimeExcluder,
} from "./excluder.js";
import type { NamedExcluder, Times } from "./excluding.js";
import { within } from "./fault.js";
import { matchesLocal, timeless } from "./fields.js";
import { parseInstant } from "./instant.js";
import { namedCalendar, type Rule } from "./named.js";
import { intervalSchedule, lazy } from "./plain.js";
import { type FieldPlan, intervalOf, planOf } from "./plan.js";
import { AtOnce, EveryInterval } from "./simple.js";
import type { CompiledSchedule, EverySchedule, ScheduleContext, ScheduleExclusion } from "./types.js";
import { type Zone, zoneOf } from "./zone.js";
import { isUtc, requireZone } from "./zone-names.js";

/** What exclusions must know of the schedule that they are taken from. */
export interface Target extends Times {
  readonly compiled: CompiledSchedule;
  /** Undefined: the plain wall clock of an instant. */
  readonly wallOf?: WallOf | undefined;
  /** Whether it runs times late that a gap skipped. */
  readonly late: boolean;
}

/** How an occurrence is shown on a clock: with the zone's, where it only runs late, what it was meant to be. */
type WallOf = (occurrence: number) => number;

/** Before 1972 some zones were off by odd seconds: minutes of different zones did not turn together. */
const WHOLE_MINUTES_SINCE = 3 * 366 * DAY;

/** What to resolve names and `H` with. */
export interface Surroundings {
  readonly seed: string;
  readonly context: ScheduleContext;
  /** Leave out calendars that are not known here, rather than refuse them. */
  readonly lenient: boolean;
}

/** An exclusion as read, still to be put on the clock of a schedule: members of a union share what it says. */
type Reading = (target: Target) => Excluder[];

/**
 * Reads exclusions once, for all members of a union.
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`
 */
export function readExclusions(
  specs: readonly ScheduleExclusion[],
  around: Surroundings,
  path: string,
): (target: Target) => NamedExcluder[] {
  const all = specs.map((spec, i) =>
    within(`${path}.except[${i}]`, () => {
      const label = "named" in spec ? spec.named : "cron" in spec ? spec.cron : textOf(spec);
      return { label, bounds: boundsOf(spec), reading: read(spec, around) };
    }),
  );
  return (target) =>
    all.flatMap(({ label, bounds, reading }) =>
      reading(target).map((excluder) => ({
        excluder: bounds === UNBOUNDED ? excluder : new BoundedExcluder(excluder, bounds),
        label,
      })),
    );
}

function textOf(spec: Exclude<ScheduleExclusion, { named: string } | { cron: string }>): string {
  if ("calendar" in spec) return spec.calendar;
  return "every" in spec ? `every ${spec.every}` : String(spec.at);
}

function read(spec: ScheduleExclusion, around: Surroundings): Reading {
  if ("named" in spec) return readNamed(spec, around);
  if ("every" in spec) return readEvery(spec);
  if ("at" in spec) {
    const excluder = new TimeExcluder(new AtOnce(parseInstant(spec.at, "schedule.at")));
    return () => [excluder];
  }
  const plan = planOf(spec, around.seed)!;
  const zone = ownZone(plan, spec.timezone);
  const fields = timeless(plan.fields);
  const days = new FieldDays(fields);
  if (plan.event?.daysOnly) return onClock(zone, (clock) => [dayExcluder(days, clock)]);
  return onClock(zone, (clock) => [fieldExcluder({ fields, days }, clock)]);
}

/** Whose clock an expression is read on; undefined: that of the schedule. */
export function ownZone(plan: FieldPlan, timezone: string | undefined): string | undefined {
  return plan.event?.zone ?? (timezone === undefined ? undefined : plan.zone);
}

function readEvery(spec: EverySchedule): Reading {
  const { interval, origin, zone } = intervalOf(spec);
  // A fixed interval is counted in UTC; one of the calendar that has no zone, on the clock of the schedule.
  const own = typeof interval === "number" ? "UTC" : spec.timezone && zone;
  return onClock(own, (clock) => {
    const times = intervalSchedule({ interval, origin, zone: clock.name });
    const { compiled } = clock.target;
    if (times instanceof EveryInterval && compiled instanceof EveryInterval && compiled.isWithin(times)) {
      return [new FromOnExcluder(times.origin)];
    }
    const single = new TimeExcluder(times);
    if (times instanceof CalendarInterval && !times.isDaily) return [single];
    const daily = timesExcluder(clock, {
      has: (occurrence) => single.has(occurrence),
      days: EVERY_DAY,
      minutes: (seconds) => wholeMinutesOfInterval(times, seconds),
      firstPass: times instanceof CalendarInterval,
    });
    return [new BoundedExcluder(daily, { ...UNBOUNDED, start: times.origin })];
  });
}

function readNamed(
  { named, timezone }: { named: string; timezone?: string | undefined },
  { context, lenient }: Surroundings,
): Reading {
  const own = timezone === undefined ? undefined : requireZone(timezone, "schedule.timezone");
  const entries = context.calendars?.get(named);
  if (entries === undefined) {
    if (lenient) return () => [];
    throw new CarillonError("INVALID_SCHEDULE", `There is no calendar ${quote(named)}.`, {
      field: "schedule.named",
      remedy: "Store it first: carillon calendars put NAME FILE, or client.putCalendar(name, entries).",
    });
  }
  const calendar = namedCalendar(entries, `calendars.${named}`).map(({ zone = own, days, events }) =>
    onClock(zone, (clock) => [
      ...(days === undefined ? [] : [dayExcluder(days, clock)]),
      ...events.map((event) => fieldExcluder(event, clock)),
    ]),
  );
  return (target) => calendar.flatMap((reading) => reading(target));
}

/** The clock that an exclusion is read on, beside that of the schedule that it is taken from. */
interface Clock {
  readonly name: string;
  readonly zone: Zone | undefined;
  readonly wallOf: WallOf;
  readonly target: Target;
  readonly same: boolean;
}

/** @param zone undefined: that of the schedule */
function onClock(zone: string | undefined, read: (clock: Clock) => Excluder[]): Reading {
  return (target) => {
    const name = zone ?? target.zone;
    const same = name === target.zone || (isUtc(name) && isUtc(target.zone));
    const table = zoneOf(name);
    const plain: WallOf = table === undefined ? (time) => time : (time) => time + table.at(time).offset;
    return read({ name, zone: table, wallOf: (same ? target.wallOf : undefined) ?? plain, target, same });
  };
}

const WHOLE_DAYS: Minutes = { minutes: ALL_MINUTES, since: Number.NEGATIVE_INFINITY };

function dayExcluder(days: DaySet, { zone, wallOf, target }: Clock): Excluder {
  const has = (occurrence: number) => hasDay(days, Math.floor(wallOf(occurrence) / DAY));
  return new DailyExcluder({ has, days, taken: () => WHOLE_DAYS, zone, target: zoneOf(target.zone) });
}

function fieldExcluder({ fields, days }: Rule, clock: Clock): Excluder {
  return timesExcluder(clock, {
    has: (occurrence) => matchesLocal(fields, clock.wallOf(occurrence)),
    days,
    minutes: (seconds) => wholeMinutesOf(fields, seconds),
  });
}

interface TimesOfDay extends Pick<Daily, "has" | "days" | "firstPass"> {
  /** Those of which it has all of these seconds. */
  readonly minutes: (seconds: Sixty) => bigint;
}

function timesExcluder(
  { zone, target, same }: Clock,
  { minutes: minutesOf, ...times }: TimesOfDay,
): Excluder {
  const taken = lazy((): Minutes => {
    const seconds = target.pattern()?.seconds;
    if (seconds === undefined) return { minutes: 0n, since: Number.POSITIVE_INFINITY };
    const minutes = minutesOf(seconds);
    // What runs late is compared as what it was meant to be, by who knows that.
    const known = same && !times.firstPass && (target.wallOf !== undefined || !target.late);
    if (known || minutesOf(ALL_SIXTY) === ALL_MINUTES) return { minutes, since: Number.NEGATIVE_INFINITY };
    // Else it is on the minute.
    const late = target.late ? 1 : 0;
    const whole = minutesOf({ lo: seconds.lo | late, hi: seconds.hi }) === ALL_MINUTES;
    return { minutes, since: whole ? WHOLE_MINUTES_SINCE : Number.POSITIVE_INFINITY };
  });
  return new DailyExcluder({ ...times, taken, zone, target: zoneOf(target.zone) });
}
