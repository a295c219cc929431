import { civilFromDays, DAY, daysFromCivil, HOUR, MINUTE, SECOND } from "../civil.js";
import { hasBit, hasSixty, nextBit, nextSixty, prevBit, prevSixty, type Sixty } from "./bits.js";
import { type DayRule, daysMatching } from "./day-rule.js";
import type { SubSeconds } from "./subseconds.js";

/** A schedule of either syntax, as sets of allowed values of local time. */
export interface Fields {
  readonly seconds: Sixty;
  /** Present when a calendar event names fractions of a second; `seconds` is then unused. */
  readonly subSeconds?: SubSeconds;
  readonly minutes: Sixty;
  readonly hours: number;
  readonly days: DayRule;
  /** Bit 1 is January. */
  readonly months: number;
  /** The first and last year that can match. */
  readonly firstYear: number;
  readonly lastYear: number;
  /** Allowed years, index 0 is `firstYear`; absent when all are. */
  readonly years?: Uint8Array;
}

/**
 * Weekdays, leap years and so all day rules repeat after exactly 400 years: a rule that has no match in 400 years has
 * none at all.
 */
const CYCLE = 400;

function secondFrom(fields: Fields, ms: number): number {
  if (fields.subSeconds) return fields.subSeconds.next(ms);
  const second = nextSixty(fields.seconds, Math.ceil(ms / SECOND));
  return second < 0 ? -1 : second * SECOND;
}

function secondUpTo(fields: Fields, ms: number): number {
  if (fields.subSeconds) return fields.subSeconds.prev(ms);
  const second = prevSixty(fields.seconds, Math.floor(ms / SECOND));
  return second < 0 ? -1 : second * SECOND;
}

export function hasSecond(fields: Fields, second: number): boolean {
  return secondFrom(fields, second * SECOND) === second * SECOND;
}

/** The first matching time of day at or after `ms` since midnight, or -1. */
function timeFrom(fields: Fields, ms: number): number {
  const hour = Math.floor(ms / HOUR);
  if (hasBit(fields.hours, hour)) {
    const inHour = ms - hour * HOUR;
    let minute = Math.floor(inHour / MINUTE);
    if (hasSixty(fields.minutes, minute)) {
      const second = secondFrom(fields, inHour - minute * MINUTE);
      if (second >= 0) return hour * HOUR + minute * MINUTE + second;
    }
    minute = nextSixty(fields.minutes, minute + 1);
    if (minute >= 0) return hour * HOUR + minute * MINUTE + secondFrom(fields, 0);
  }
  const later = nextBit(fields.hours, hour + 1);
  return later < 0 ? -1 : later * HOUR + firstInHour(fields);
}

/** The last matching time of day at or before `ms` since midnight, or -1. */
function timeUpTo(fields: Fields, ms: number): number {
  const hour = Math.floor(ms / HOUR);
  if (hasBit(fields.hours, hour)) {
    const inHour = ms - hour * HOUR;
    let minute = Math.floor(inHour / MINUTE);
    if (hasSixty(fields.minutes, minute)) {
      const second = secondUpTo(fields, inHour - minute * MINUTE);
      if (second >= 0) return hour * HOUR + minute * MINUTE + second;
    }
    minute = prevSixty(fields.minutes, minute - 1);
    if (minute >= 0) return hour * HOUR + minute * MINUTE + secondUpTo(fields, MINUTE - 1);
  }
  const earlier = prevBit(fields.hours, hour - 1);
  if (earlier < 0) return -1;
  return earlier * HOUR + prevSixty(fields.minutes, 59) * MINUTE + secondUpTo(fields, MINUTE - 1);
}

function yearMatches(fields: Fields, year: number): boolean {
  return fields.years === undefined || fields.years[year - fields.firstYear] === 1;
}

/** Removes the bounds of years: they limit when a schedule fires, not what an exclusion removes. */
export function timeless(fields: Fields): Fields {
  return fields.years === undefined ? { ...fields, firstYear: -271_822, lastYear: 275_761 } : fields;
}

/** Whether a local time matches, without a search. */
export function matchesLocal(fields: Fields, local: number): boolean {
  const start = Math.floor(local / DAY);
  const hour = Math.floor((local - start * DAY) / HOUR);
  const inHour = local - start * DAY - hour * HOUR;
  const minute = Math.floor(inHour / MINUTE);
  if (!hasBit(fields.hours, hour) || !hasSixty(fields.minutes, minute)) return false;
  if (secondFrom(fields, inHour - minute * MINUTE) !== inHour - minute * MINUTE) return false;
  return matchesDay(fields, local);
}

export function matchesDay(fields: Fields, local: number): boolean {
  const date = civilFromDays(Math.floor(local / DAY));
  return hasBit(daysOf(fields, Math.floor(date / 512), (date >> 5) & 15), (date & 31) - 1);
}

/** The first matching time of an hour, in ms since its begin. */
export function firstInHour(fields: Fields): number {
  return nextSixty(fields.minutes, 0) * MINUTE + secondFrom(fields, 0);
}

/** The days of a month that match, the 1st in bit 0. */
export function daysOf(fields: Fields, year: number, month: number): number {
  if (year < fields.firstYear || year > fields.lastYear || !yearMatches(fields, year)) return 0;
  return hasBit(fields.months, month) ? daysMatching(fields.days, year, month) : 0;
}

/**
 * The smallest matching local time at or after `local`, or Infinity. Local times are milliseconds since
 * 1970-01-01T00:00 on the wall clock; whether such a time exists in a zone is not checked here.
 */
export function nextLocal(fields: Fields, local: number): number {
  const start = Math.floor(local / DAY);
  const date = civilFromDays(start);
  let year = Math.floor(date / 512);
  let month = (date >> 5) & 15;
  let day = date & 31;
  if (year < fields.firstYear) {
    year = fields.firstYear;
    month = 1;
    day = 1;
  } else if (year <= fields.lastYear && yearMatches(fields, year) && hasBit(fields.months, month)) {
    if (hasBit(daysMatching(fields.days, year, month), day - 1)) {
      const time = timeFrom(fields, local - start * DAY);
      if (time >= 0) return start * DAY + time;
    }
    day++;
  }
  const end = Math.min(fields.lastYear, year + CYCLE);
  for (; year <= end; year++, month = 1, day = 1) {
    if (!yearMatches(fields, year)) continue;
    let m = nextBit(fields.months, month);
    while (m > 0) {
      const found = nextBit(daysMatching(fields.days, year, m), (m === month ? day : 1) - 1);
      if (found >= 0) return daysFromCivil(year, m, found + 1) * DAY + timeFrom(fields, 0);
      m = nextBit(fields.months, m + 1);
    }
  }
  return Number.POSITIVE_INFINITY;
}

/** The largest matching local time at or before `local`, or -Infinity. */
export function prevLocal(fields: Fields, local: number): number {
  const start = Math.floor(local / DAY);
  const date = civilFromDays(start);
  let year = Math.floor(date / 512);
  let month = (date >> 5) & 15;
  let day = date & 31;
  if (year > fields.lastYear) {
    year = fields.lastYear;
    month = 12;
    day = 31;
  } else if (year >= fields.firstYear && yearMatches(fields, year) && hasBit(fields.months, month)) {
    if (hasBit(daysMatching(fields.days, year, month), day - 1)) {
      const time = timeUpTo(fields, local - start * DAY);
      if (time >= 0) return start * DAY + time;
    }
    day--;
  }
  const end = Math.max(fields.firstYear, year - CYCLE);
  for (; year >= end; year--, month = 12, day = 31) {
    if (!yearMatches(fields, year)) continue;
    let m = prevBit(fields.months, month);
    while (m > 0) {
      const found = prevBit(daysMatching(fields.days, year, m), (m === month ? day : 31) - 1);
      if (found >= 0) return daysFromCivil(year, m, found + 1) * DAY + timeUpTo(fields, DAY - 1);
      m = prevBit(fields.months, m - 1);
    }
  }
  return Number.NEGATIVE_INFINITY;
}
