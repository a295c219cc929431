import type { Bounds } from "./bounds.js";
import { DAY, MINUTE } from "./civil.js";
import { ALL_MINUTES, shifted } from "./day-minutes.js";
import { type DaySet, hasDay, leapAfter, leapBefore } from "./day-set.js";
import { firstOf, type Stretch } from "./stretch.js";
import type { CompiledSchedule } from "./types.js";
import { MAX_CHANGE, MAX_OFFSET, type Segment, segmentAt, type Zone } from "./zone.js";

/** Which occurrences of one schedule are taken away. */
export interface Excluder {
  has(occurrence: number): boolean;
  /** What it takes around a time of the schedule, for searches to leap over. Undefined: that is not known. */
  stretch(time: number): Stretch | undefined;
}

/** The same minutes of some days. */
export interface Daily {
  readonly has: (occurrence: number) => boolean;
  readonly days: DaySet;
  readonly taken: () => Minutes;
  /** The clock of the days and the minutes, and that of the schedule. */
  readonly zone: Zone | undefined;
  readonly target: Zone | undefined;
  /** Of times that its clock shows twice, it takes only the first. */
  readonly firstPass?: boolean;
}

export interface Minutes {
  readonly minutes: bigint;
  /** From when on it makes no difference how far the clocks are apart. */
  readonly since: number;
}

export class DailyExcluder implements Excluder {
  readonly #daily: Daily;
  #recent: Stretch = { start: 0, end: 0, minutes: 0n };

  constructor(daily: Daily) {
    this.#daily = daily;
  }

  has(occurrence: number): boolean {
    return this.#daily.has(occurrence);
  }

  stretch(time: number): Stretch | undefined {
    if (time >= this.#recent.start && time < this.#recent.end) return this.#recent;
    const { days, zone } = this.#daily;
    const { minutes, since } = this.#daily.taken();
    if (minutes === 0n) return undefined;
    const own = segmentAt(zone, time);
    const day = Math.floor((time + own.offset) / DAY);
    if (!hasDay(days, day)) return undefined;
    const start = startOf(time, own, (leapBefore(days, day) + 1) * DAY);
    const end = endOf(time, own, leapAfter(days, day) * DAY);
    const stretch =
      time >= since
        ? { start: Math.max(start, since), end, minutes }
        : this.#whileApart({ start, end, minutes }, time, own);
    if (stretch !== undefined) this.#recent = stretch;
    return stretch;
  }

  /** While neither clock is changed. */
  #whileApart({ start, end, minutes }: Stretch, time: number, own: Segment): Stretch | undefined {
    const { target, firstPass = false } = this.#daily;
    const shown = segmentAt(target, time);
    const ahead = (own.offset - shown.offset) / MINUTE;
    const first = firstPass ? own.start + Math.max(own.before - own.offset, 0) : own.start;
    if (time < first || !Number.isInteger(ahead)) return undefined;
    return {
      start: Math.max(start, first, shown.start + 1),
      end: Math.min(end, own.end, shown.end),
      minutes: shifted(minutes, -ahead),
    };
  }
}

/** The times of another schedule, one by one. */
export class TimeExcluder implements Excluder {
  readonly #times: CompiledSchedule;

  constructor(times: CompiledSchedule) {
    this.#times = times;
  }

  has(occurrence: number): boolean {
    return this.#times.latest(occurrence) === occurrence;
  }

  stretch(): undefined {
    return undefined;
  }
}

/** All occurrences from an instant on. */
export class FromOnExcluder implements Excluder {
  readonly #stretch: Stretch;

  constructor(start: number) {
    this.#stretch = { start, end: Number.POSITIVE_INFINITY, minutes: ALL_MINUTES };
  }

  has(occurrence: number): boolean {
    return occurrence >= this.#stretch.start;
  }

  stretch(time: number): Stretch | undefined {
    return this.has(time) ? this.#stretch : undefined;
  }
}

/** Another excluder, from `start` to `end` only. */
export class BoundedExcluder implements Excluder {
  readonly #inner: Excluder;
  readonly #bounds: Bounds;

  constructor(inner: Excluder, bounds: Bounds) {
    this.#inner = inner;
    this.#bounds = bounds;
  }

  has(occurrence: number): boolean {
    return this.#within(occurrence) && this.#inner.has(occurrence);
  }

  stretch(time: number): Stretch | undefined {
    const whole = this.#within(time) ? this.#inner.stretch(time) : undefined;
    if (whole === undefined) return undefined;
    return {
      start: Math.max(whole.start, this.#bounds.start),
      end: Math.min(whole.end, this.#bounds.end + 1),
      minutes: whole.minutes,
    };
  }

  #within(time: number): boolean {
    return time >= this.#bounds.start && time <= this.#bounds.end;
  }
}

/** The instant of the wall clock `local`, later than `time`; every day between the two is excluded. */
function endOf(time: number, segment: Segment, local: number): number {
  const end = local - segment.offset;
  if (end <= segment.end) return end;
  // A clock that soon goes back shows days before this one again; later than that, only excluded ones up to `local`.
  return segment.end - time <= MAX_CHANGE ? segment.end : Math.max(segment.end, local - MAX_OFFSET);
}

/** The same of one not later than `time`. */
function startOf(time: number, segment: Segment, local: number): number {
  const start = local - segment.offset;
  const first = firstOf(time, segment);
  if (start >= first) return start;
  return time - segment.start <= MAX_CHANGE ? first : Math.min(first, local + MAX_OFFSET);
}
