import { membersOf, membersOfSixty, type Sixty, sixty } from "./bits.js";
import type { CalendarInterval } from "./calendar-interval.js";
import { DAY, MINUTE, modulo, SECOND } from "./civil.js";
import { type Fields, hasSecond } from "./fields.js";
import { EveryInterval } from "./simple.js";

/*
 * Minutes of the day, 00:00 in bit 0 and 23:59 in bit 1,439: what several exclusions take together is one `|`.
 */

export const DAY_MINUTES = 1_440;
export const ALL_MINUTES = (1n << BigInt(DAY_MINUTES)) - 1n;

/** The times of day that a schedule can have on its own clock: some of these minutes, at some of these seconds. */
export interface TimePattern {
  readonly minutes: bigint;
  readonly seconds: Sixty;
}

function minutesOf({ hours, minutes }: Pick<Fields, "hours" | "minutes">): bigint {
  const hour = BigInt(minutes.lo) | (BigInt(minutes.hi) << 30n);
  return membersOf(hours).reduce((all, n) => all | (hour << BigInt(n * 60)), 0n);
}

function minutesWhere(test: (minute: number) => boolean): bigint {
  const bits = Array.from({ length: DAY_MINUTES }, (_, n) => (test(DAY_MINUTES - 1 - n) ? "1" : "0"));
  return BigInt(`0b${bits.join("")}`);
}

/** As they are shown on a clock that is so many minutes ahead. */
export function shifted(minutes: bigint, ahead: number): bigint {
  const by = BigInt(modulo(ahead, DAY_MINUTES));
  return ((minutes << by) | (minutes >> (BigInt(DAY_MINUTES) - by))) & ALL_MINUTES;
}

/** The first member from `from` on, on the following day where none of this one is left. There is one. */
export function nextMinute(minutes: bigint, from: number): number {
  const rest = (minutes >> BigInt(from)) << BigInt(from);
  return rest === 0n ? DAY_MINUTES + nextMinute(minutes, 0) : top(rest & -rest);
}

/** The last member up to `to`, on the day before where this one has none so early. There is one. */
export function prevMinute(minutes: bigint, to: number): number {
  const rest = BigInt.asUintN(to + 1, minutes);
  return rest === 0n ? prevMinute(minutes, DAY_MINUTES - 1) - DAY_MINUTES : top(rest);
}

function top(minutes: bigint): number {
  const digits = minutes.toString(16);
  return digits.length * 4 - 1 - Math.clz32(Number.parseInt(digits.charAt(0), 16) << 28);
}

export function patternOfFields(fields: Fields): TimePattern | undefined {
  return fields.subSeconds ? undefined : { minutes: minutesOf(fields), seconds: fields.seconds };
}

export function patternOfInterval(times: EveryInterval | CalendarInterval): TimePattern | undefined {
  const { interval, origin } = elapsed(times);
  if (interval % SECOND !== 0 || origin % SECOND !== 0) return undefined;
  // Of any day, its times are some of those that are whole such steps from the origin.
  const step = divisor(interval, DAY);
  const ofMinute = divisor(step, MINUTE);
  return {
    minutes: minutesWhere((minute) => modulo(origin - minute * MINUTE, step) < MINUTE),
    seconds: sixty(Array.from({ length: 60 }, (_, n) => (n * SECOND - origin) % ofMinute === 0)),
  };
}

/** On its own clock, while that is not changed; of one of the calendar, as if it had each day. */
function elapsed(times: EveryInterval | CalendarInterval): { interval: number; origin: number } {
  return times instanceof EveryInterval ? times : { interval: DAY, origin: times.time };
}

/** The greatest common one. */
function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/** The minutes of each day, on its own clock, of which an exclusion has all of these seconds. */
export function wholeMinutesOf(exclusion: Fields, seconds: Sixty): bigint {
  return membersOfSixty(seconds).every((second) => hasSecond(exclusion, second)) ? minutesOf(exclusion) : 0n;
}

/** The same of an interval that has times on each day, from its origin on. */
export function wholeMinutesOfInterval(times: EveryInterval | CalendarInterval, seconds: Sixty): bigint {
  const { interval, origin } = elapsed(times);
  const [first = 0, ...others] = membersOfSixty(seconds);
  const alike = others.every((second) => ((second - first) * SECOND) % interval === 0);
  if (DAY % interval !== 0 || !alike) return 0n;
  return minutesWhere((minute) => (minute * MINUTE + first * SECOND - origin) % interval === 0);
}
