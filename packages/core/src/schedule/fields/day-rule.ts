import { daysFromCivil, daysInMonth, weekdayOfDays } from "../civil.js";
import { hasBit, membersOf } from "./bits.js";

/** All days of the longest month, day 1 in bit 0. */
export const ALL_DAYS = 0x7fff_ffff;
/** All weekdays, Sunday in bit 0. */
export const ALL_WEEKDAYS = 0x7f;

/**
 * Days of a month that match. Two groups, the day of the month and the day of the week; a day needs both, or,
 * with `either`, one of them (cron, when neither field starts with `*`).
 */
export interface DayRule {
  /** Days of the month, bit 0 is the 1st. */
  dom: number;
  /** Days counted from the end of the month, bit 0 is the last. */
  fromEnd: number;
  /** `15W`: the weekday (Mon-Fri) nearest to a day, within its month. */
  nearest: number;
  /** `LW`: the last Mon-Fri of the month. */
  lastWorkday: boolean;
  /** Weekdays, bit 0 is Sunday. */
  dow: number;
  /** `5#2`: bit `(n - 1) * 7 + weekday` for n 1-4, and the fifth ones apart: 35 bits do not fit. */
  nth: number;
  fifth: number;
  /** `5L`: the last such weekday of the month. */
  last: number;
  either: boolean;
}

export function everyDay(): DayRule {
  return {
    dom: ALL_DAYS,
    fromEnd: 0,
    nearest: 0,
    lastWorkday: false,
    dow: ALL_WEEKDAYS,
    nth: 0,
    fifth: 0,
    last: 0,
    either: false,
  };
}

export function isEveryDay(rule: DayRule): boolean {
  const dom = rule.dom === ALL_DAYS;
  const dow = rule.dow === ALL_WEEKDAYS;
  return rule.either ? dom || dow : dom && dow;
}

/** Bit 0 becomes the weekday of the 1st. */
function rotate(weekdays: number, first: number): number {
  return ((weekdays >>> first) | (weekdays << (7 - first))) & ALL_WEEKDAYS;
}

function nearestWorkday(day: number, length: number, first: number): number {
  const weekday = (first + day - 1) % 7;
  if (weekday === 6) return day > 1 ? day - 1 : day + 2;
  if (weekday === 0) return day < length ? day + 1 : day - 2;
  return day;
}

function daysOfMonth(rule: DayRule, length: number, first: number): number {
  let mask = rule.dom;
  for (const k of rule.fromEnd === 0 ? [] : membersOf(rule.fromEnd)) {
    if (k < length) mask |= 1 << (length - 1 - k);
  }
  for (const bit of rule.nearest === 0 ? [] : membersOf(rule.nearest)) {
    // A day that the month does not have never matches, as with a plain number.
    if (bit < length) mask |= 1 << (nearestWorkday(bit + 1, length, first) - 1);
  }
  if (rule.lastWorkday) mask |= 1 << (nearestWorkday(length, length, first) - 1);
  return mask;
}

function daysOfWeek(rule: DayRule, length: number, first: number): number {
  const spread = (week: number) => week | (week << 7) | (week << 14) | (week << 21) | (week << 28);
  let mask = spread(rotate(rule.dow, first));
  for (let n = 0; n < 4 && rule.nth !== 0; n++) {
    mask |= rotate((rule.nth >>> (n * 7)) & ALL_WEEKDAYS, first) << (n * 7);
  }
  mask |= rotate(rule.fifth, first) << 28;
  if (rule.last !== 0) mask |= spread(rotate(rule.last, first)) & (ALL_WEEKDAYS << (length - 7));
  return mask;
}

/** The matching days of one month, the 1st in bit 0. */
export function daysMatching(rule: DayRule, year: number, month: number): number {
  const length = daysInMonth(year, month);
  const within = ALL_DAYS >>> (31 - length);
  if (isEveryDay(rule)) return within;
  const first = weekdayOfDays(daysFromCivil(year, month, 1));
  const dom = daysOfMonth(rule, length, first);
  const dow = daysOfWeek(rule, length, first);
  return (rule.either ? dom | dow : dom & dow) & within;
}

export function weekdaysOf(mask: number): number[] {
  // Monday first, as people count.
  return [1, 2, 3, 4, 5, 6, 0].filter((day) => hasBit(mask, day));
}
