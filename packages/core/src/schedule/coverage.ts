import { HALF, membersOfSixty, type Sixty, sixty } from "./bits.js";
import { DAY, MINUTE, SECOND } from "./civil.js";
import type { Fields } from "./fields.js";

/** The seconds, minutes and hours that a schedule's times can have, on its own clock. */
export interface TimePattern {
  readonly seconds: Sixty;
  readonly minutes: Sixty;
  readonly hours: number;
}

const EVERY: Sixty = { lo: HALF, hi: HALF };
const NONE: Sixty = { lo: 0, hi: 0 };
const ZERO: Sixty = { lo: 1, hi: 0 };
const ALL_HOURS = 0xff_ffff;
export const EACH_SECOND: TimePattern = { seconds: EVERY, minutes: EVERY, hours: ALL_HOURS };
/** Before 1972 some zones were off by odd seconds: minutes of different zones did not turn together. */
const WHOLE_MINUTES_SINCE = 3 * 366 * DAY;

export function patternOfFields(fields: Fields): TimePattern | undefined {
  return fields.subSeconds === undefined ? fields : undefined;
}

/** Of a fixed interval: whole seconds; where it counts whole minutes, one second of the minute and some of the hour. */
export function patternOfInterval(interval: number, origin: number): TimePattern | undefined {
  if (interval % SECOND !== 0 || origin % SECOND !== 0) return undefined;
  const second = (((origin / SECOND) % 60) + 60) % 60;
  const one = { lo: second < 30 ? 1 << second : 0, hi: second < 30 ? 0 : 1 << (second - 30) };
  if (interval % MINUTE !== 0) return EACH_SECOND;
  const minute = Math.floor(origin / MINUTE);
  const step = divisor(interval / MINUTE, 60);
  const minutes = sixty(Array.from({ length: 60 }, (_, n) => (n - minute) % step === 0));
  return { seconds: one, minutes, hours: ALL_HOURS };
}

/** The greatest common one. */
function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/**
 * Where an exclusion has one time of a schedule, which others it has for certain: all of the same minute, hour or
 * day. Then a search leaps over these, instead of asking for each.
 */
export class Coverage {
  readonly #minute: boolean;
  readonly hour: boolean;
  readonly day: boolean;
  readonly #since: number;

  /**
   * @param sameClock whether schedule and exclusion are in one zone; in two, only whole minutes are sure to be alike
   * @param late whether the schedule runs times late that a gap skipped: in another zone they are like any other, on
   * the minute
   */
  constructor(exclusion: Fields, schedule: TimePattern | undefined, sameClock: boolean, late: boolean) {
    const possible = schedule !== undefined && exclusion.subSeconds === undefined;
    const onMinute = late && !sameClock ? ZERO : NONE;
    this.#minute =
      possible && within(schedule.seconds, exclusion.seconds) && within(onMinute, exclusion.seconds);
    this.hour = this.#minute && within(sameClock ? schedule!.minutes : EVERY, exclusion.minutes);
    const hours = sameClock && possible ? schedule.hours : ALL_HOURS;
    this.day = this.hour && (hours & ~exclusion.hours) === 0;
    this.#since = sameClock ? Number.NEGATIVE_INFINITY : WHOLE_MINUTES_SINCE;
  }

  none(time: number): boolean {
    return !this.#minute || time < this.#since;
  }

  /** As far back as this holds; the time before is asked for by itself. */
  since(time: number): number {
    return Math.max(time, this.#since - 1);
  }
}

/** What is asked of a schedule to know whether an interval has all of its times. */
export interface Covered {
  readonly pattern?: TimePattern | undefined;
  readonly utc: boolean;
  /** Whether it runs times late that a gap skipped: on the minute, whatever their second. */
  readonly late: boolean;
}

/** From when on a fixed interval (ms, from `origin` on) has every time of a schedule; undefined: not for certain. */
export function coveredSince(
  interval: number,
  origin: number,
  { pattern, utc, late }: Covered,
): number | undefined {
  if (pattern === undefined || MINUTE % interval !== 0) return undefined;
  const seconds = membersOfSixty(pattern.seconds);
  const all = late ? [0, ...seconds] : seconds;
  if (!all.every((second) => (second * SECOND - origin) % interval === 0)) return undefined;
  return utc || SECOND % interval === 0 ? origin : Math.max(origin, WHOLE_MINUTES_SINCE);
}

function within(inner: Sixty, outer: Sixty): boolean {
  return (inner.lo & ~outer.lo) === 0 && (inner.hi & ~outer.hi) === 0;
}
