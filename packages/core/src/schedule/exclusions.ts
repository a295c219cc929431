import { CarillonError, quote } from "../errors.js";
import { type Bounds, boundsOf, UNBOUNDED } from "./bounds.js";
import {
  Coverage,
  coveredSince,
  hasWholeDays,
  isAligned,
  type TimePattern,
  WHOLE_MINUTES_SINCE,
} from "./coverage.js";
import { type DaySet, FieldDays } from "./day-set.js";
import {
  BoundedExcluder,
  DayExcluder,
  type Excluder,
  FieldExcluder,
  FromOnExcluder,
  TimeExcluder,
  type WallOf,
} from "./excluder.js";
import { AlignedExcluder, OtherClockExcluder } from "./excluder-apart.js";
import type { NamedExcluder } from "./excluding.js";
import { within } from "./fault.js";
import { timeless } from "./fields.js";
import { parseInstant } from "./instant.js";
import { namedCalendar, type Rule } from "./named.js";
import { intervalSchedule } from "./plain.js";
import { type FieldPlan, intervalOf, planOf } from "./plan.js";
import { AtOnce, EveryInterval } from "./simple.js";
import type { CompiledSchedule, EverySchedule, ScheduleContext, ScheduleExclusion } from "./types.js";
import { type Zone, zoneOf } from "./zone.js";
import { isUtc, requireZone } from "./zone-names.js";

/** What exclusions must know of the schedule that they are taken from. */
export interface Target {
  readonly compiled: CompiledSchedule;
  readonly zone: string;
  /** Undefined: the plain wall clock of an instant. */
  readonly wallOf?: WallOf | undefined;
  readonly pattern?: TimePattern | undefined;
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
  const plan = intervalOf(spec);
  // An interval of the calendar without a zone is read on the clock of the schedule; a fixed one has none to read.
  if (spec.timezone === undefined && typeof plan.interval !== "number") {
    return ({ zone }) => [new TimeExcluder(intervalSchedule({ ...plan, zone }))];
  }
  const { interval, origin = 0 } = plan;
  const single = new TimeExcluder(intervalSchedule(plan));
  if (typeof interval !== "number") return () => [single];
  const times = new EveryInterval(interval, origin);
  return ({ compiled, pattern, zone, late }) => {
    const since =
      compiled instanceof EveryInterval && compiled.isWithin(times)
        ? origin
        : coveredSince(interval, origin, { pattern, utc: isUtc(zone), late });
    if (since === undefined) {
      const aligned = pattern !== undefined && isAligned(interval, pattern);
      return [aligned ? new AlignedExcluder(times, zoneOf(zone)) : single];
    }
    return since === origin ? [new FromOnExcluder(since)] : [new FromOnExcluder(since), single];
  };
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
    return read({ zone: table, wallOf: (same ? target.wallOf : undefined) ?? plain, target, same });
  };
}

function dayExcluder(days: DaySet, { zone, wallOf }: Clock): Excluder {
  return new DayExcluder(days, zone, wallOf);
}

const SINCE_WHOLE_MINUTES: Bounds = { ...UNBOUNDED, start: WHOLE_MINUTES_SINCE };

function fieldExcluder({ fields, days }: Rule, { zone, wallOf, target, same }: Clock): Excluder {
  const ahead = (minutes: number) =>
    new FieldExcluder(fields, days, zone, wallOf, new Coverage(fields, target.pattern, minutes));
  if (same) return ahead(0);
  const whole = hasWholeDays(fields, target) ? new BoundedExcluder(ahead(0), SINCE_WHOLE_MINUTES) : undefined;
  return new OtherClockExcluder(zone, zoneOf(target.zone), ahead, whole);
}
