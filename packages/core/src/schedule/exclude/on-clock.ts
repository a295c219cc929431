import { DAY, MINUTE } from "../civil.js";
import { ALL_HOURS, ALL_SIXTY, isAllSixty, membersOfSixty } from "../fields/bits.js";
import { type Fields, hasSecond, matchesLocal } from "../fields/fields.js";
import { secondsOf, type Timetable } from "../timetable.js";
import { isUtc } from "../zone/names.js";
import { type Zone, zoneOf } from "../zone/offsets.js";
import { type DaySet, FieldDays, hasDay } from "./day-set.js";
import { DailyExcluder, type Excluder } from "./excluder.js";

/** The clock on which an exclusion is read, and the schedule from which it removes times. */
export interface Clock {
  readonly name: string;
  readonly zone: Zone | undefined;
  readonly target: Timetable;
  /** Whether it is also the clock of the schedule. */
  readonly same: boolean;
  /** The wall clock time by which an occurrence is compared: for one that a clock change delays, its intended time. */
  readonly wallOf: (occurrence: number) => number;
}

/** @param zone undefined: that of the schedule */
export function clockOf(zone: string | undefined, target: Timetable): Clock {
  const name = zone ?? target.zone;
  const same = name === target.zone || (isUtc(name) && isUtc(target.zone));
  const table = zoneOf(name);
  const plain = table === undefined ? (time: number) => time : (time: number) => time + table.at(time).offset;
  return { name, zone: table, target, same, wallOf: (same ? target.wallOf : undefined) ?? plain };
}

/** An expression that removes times, and its days. */
export interface Rule {
  readonly fields: Fields;
  readonly days: FieldDays;
}

export function ruleOf(fields: Fields): Rule {
  return { fields, days: new FieldDays(fields) };
}

/** Removes whole days. */
export function dayExcluder(days: DaySet, { zone, wallOf }: Clock): Excluder {
  const has = (occurrence: number) => hasDay(days, Math.floor(wallOf(occurrence) / DAY));
  return new DailyExcluder({ has, days, hours: ALL_HOURS, zone });
}

/** Removes the times of an expression. */
export function fieldExcluder({ fields, days }: Rule, clock: Clock): Excluder {
  const { wallOf, zone, target, same } = clock;
  const has = (occurrence: number) => matchesLocal(fields, wallOf(occurrence));
  // Whole seconds of all clocks begin together, whole minutes only since 1972.
  const bySeconds = target.grain < MINUTE || (!fields.subSeconds && isAllSixty(fields.seconds));
  const always = bySeconds || (same && target.fields !== undefined);
  const aligned = always ? undefined : { zone: zoneOf(target.zone) };
  return new DailyExcluder({ has, days, hours: wholeHours(fields, clock), zone, aligned });
}

/** The hours, as bits, in which an expression contains every time that the schedule can have. */
function wholeHours(fields: Fields, { target, same }: Clock): number {
  const own = same ? target.fields : undefined;
  const seconds = own && !own.subSeconds ? own.seconds : secondsOf(target.grain);
  if (seconds === undefined || !membersOfSixty(seconds).every((second) => hasSecond(fields, second)))
    return 0;
  const { lo, hi } = own?.minutes ?? ALL_SIXTY;
  if ((lo & ~fields.minutes.lo) !== 0 || (hi & ~fields.minutes.hi) !== 0) return 0;
  return fields.hours | (own === undefined ? 0 : ~own.hours & ALL_HOURS);
}
