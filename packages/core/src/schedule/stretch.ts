import { MINUTE, modulo } from "./civil.js";
import { ALL_MINUTES, DAY_MINUTES, nextMinute, prevMinute, type TimePattern } from "./day-minutes.js";
import { type Segment, segmentAt, type Zone } from "./zone.js";

/** From `start` to before `end`, in UTC ms, each occurrence at these minutes of the day is taken. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
  /** On the clock of the schedule. */
  readonly minutes: bigint;
}

/** The clock of a schedule, and the times of day that it can have there. */
export interface Clock {
  readonly zone: Zone | undefined;
  /** Undefined: any. */
  readonly pattern: () => TimePattern | undefined;
}

/**
 * Stretches around an occurrence that is taken: what they take together, each occurrence from this one on to before an
 * instant.
 * @returns that instant, the latest that is certain
 */
export function takenUntil(time: number, stretches: readonly Stretch[], { zone, pattern }: Clock): number {
  const segment = segmentAt(zone, time);
  let until = time + 1;
  let free = pattern()?.minutes ?? ALL_MINUTES;
  const [midnight, minute] = minuteAt(time, segment);
  // The longest first: each one that is added leaves fewer minutes, for a shorter time.
  for (const { end, minutes } of stretches.toSorted((a, b) => b.end - a.end)) {
    if (end <= until) break;
    free &= ~minutes;
    if (free === 0n) return end;
    const next = midnight + nextMinute(free, minute) * MINUTE;
    until = Math.max(until, Math.min(next, end, segment.end));
  }
  return until;
}

/**
 * The same towards the past: each occurrence from an instant on up to this one.
 * @returns that instant, the earliest that is certain
 */
export function takenSince(time: number, stretches: readonly Stretch[], { zone, pattern }: Clock): number {
  const segment = segmentAt(zone, time);
  let since = time;
  let free = pattern()?.minutes ?? ALL_MINUTES;
  const [midnight, minute] = minuteAt(time, segment);
  for (const { start, minutes } of stretches.toSorted((a, b) => a.start - b.start)) {
    if (start >= since) break;
    free &= ~minutes;
    if (free === 0n) return start;
    const next = midnight + (prevMinute(free, minute) + 1) * MINUTE;
    since = Math.min(since, Math.max(next, start, firstOf(time, segment)));
  }
  return since;
}

/** The instant at which its day begins, as its clock is set now, and the minute of that day. */
function minuteAt(time: number, { offset }: Segment): [midnight: number, minute: number] {
  const minute = Math.floor((time + offset) / MINUTE);
  const ofDay = modulo(minute, DAY_MINUTES);
  return [(minute - ofDay) * MINUTE - offset, ofDay];
}

/** From where on one segment says anything. What runs late after a gap stands for a time of before. */
export function firstOf(time: number, segment: Segment): number {
  return time > segment.start && segment.offset > segment.before ? segment.start + 1 : segment.start;
}
