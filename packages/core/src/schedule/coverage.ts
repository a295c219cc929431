import { HALF, hasBit, hasSixty, membersOf, membersOfSixty, type Sixty, sixty } from "./bits.js";
import { DAY, HOUR, MINUTE, modulo, SECOND } from "./civil.js";
import type { Fields } from "./fields.js";

/** The seconds, minutes and hours that a schedule's times can have, on its own clock. */
export interface TimePattern {
  readonly seconds: Sixty;
  readonly minutes: Sixty;
  readonly hours: number;
}

const EVERY: Sixty = { lo: HALF, hi: HALF };
const ALL_HOURS = 0xff_ffff;
export const EACH_SECOND: TimePattern = { seconds: EVERY, minutes: EVERY, hours: ALL_HOURS };
/** Before 1972 some zones were off by odd seconds: minutes of different zones did not turn together. */
export const WHOLE_MINUTES_SINCE = 3 * 366 * DAY;

export function patternOfFields(fields: Fields): TimePattern | undefined {
  return fields.subSeconds === undefined ? fields : undefined;
}

/** Of a fixed interval: whole seconds; where it counts whole minutes, one second of the minute and some of the hour. */
export function patternOfInterval(interval: number, origin: number): TimePattern | undefined {
  if (interval % SECOND !== 0 || origin % SECOND !== 0) return undefined;
  const second = modulo(origin / SECOND, 60);
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
  readonly minute: boolean;
  readonly hour: boolean;
  readonly day: boolean;

  /** @param ahead how many minutes the exclusion's clock is ahead of the schedule's */
  constructor(exclusion: Fields, schedule: TimePattern | undefined, ahead: number) {
    const { seconds, minutes, hours } = schedule ?? EACH_SECOND;
    const possible = schedule !== undefined && exclusion.subSeconds === undefined;
    this.minute = possible && within(seconds, exclusion.seconds);
    const shown = membersOfSixty(minutes).map((minute) => minute + ahead);
    this.hour = this.minute && shown.every((minute) => hasSixty(exclusion.minutes, modulo(minute, 60)));
    this.day =
      this.minute &&
      membersOf(hours).every((hour) =>
        shown.every((minute) => {
          const time = modulo(hour * 60 + minute, 24 * 60);
          return hasBit(exclusion.hours, Math.floor(time / 60)) && hasSixty(exclusion.minutes, time % 60);
        }),
      );
  }
}

/** What is asked of a schedule to know whether an interval has all of its times. */
export interface Covered {
  readonly pattern?: TimePattern | undefined;
  readonly utc: boolean;
  /** Whether it runs times late that a gap skipped: on the minute, whatever their second. */
  readonly late: boolean;
}

/** Whether an exclusion has, of its days, all of a schedule's times, by however many minutes their clocks are apart. */
export function hasWholeDays(exclusion: Fields, { pattern, late }: Omit<Covered, "utc">): boolean {
  if (pattern === undefined) return false;
  const { lo, hi } = pattern.seconds;
  return new Coverage(exclusion, { ...EACH_SECOND, seconds: { lo: late ? lo | 1 : lo, hi } }, 0).day;
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

/**
 * Whether the times of a schedule are apart by whole intervals of a fixed length, while its clock is not changed: an
 * exclusion of that length has all of them or none.
 */
export function isAligned(interval: number, { seconds, minutes, hours }: TimePattern): boolean {
  const stays = (values: number[], unit: number) =>
    values.every((value) => ((value - values[0]!) * unit) % interval === 0);
  return (
    DAY % interval === 0 &&
    stays(membersOf(hours), HOUR) &&
    stays(membersOfSixty(minutes), MINUTE) &&
    stays(membersOfSixty(seconds), SECOND)
  );
}

function within(inner: Sixty, outer: Sixty): boolean {
  return (inner.lo & ~outer.lo) === 0 && (inner.hi & ~outer.hi) === 0;
}
