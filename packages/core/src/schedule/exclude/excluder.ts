import type { Bounds } from "../bounds.js";
import { DAY, HOUR, MINUTE } from "../civil.js";
import { ALL_HOURS, hasBit, nextBit, prevBit } from "../fields/bits.js";
import type { CompiledSchedule } from "../types.js";
import {
  MAX_CHANGE,
  MAX_OFFSET,
  MINUTES_ALIGNED_SINCE,
  type Segment,
  segmentAt,
  type Zone,
} from "../zone/offsets.js";
import { type DaySet, hasDay, leapAfter, leapBefore } from "./day-set.js";

/** From `start` to before `end`, in UTC ms: each occurrence in between is excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Decides which occurrences of one schedule are excluded. */
export interface Excluder {
  has(occurrence: number): boolean;
  /** Excluded days or hours around an excluded time, which searches can leap over. Undefined if unknown. */
  span(time: number): Span | undefined;
}

export interface Daily {
  readonly has: (occurrence: number) => boolean;
  readonly days: DaySet;
  /** Hours of these days in which every time of the schedule is excluded, as bits: all of them, whole days. */
  readonly hours: number;
  /** The clock of the days and hours. */
  readonly zone: Zone | undefined;
  /** Clock of the schedule, if the hours hold only while minutes of both clocks begin together. */
  readonly aligned?: { readonly zone: Zone | undefined } | undefined;
}

/** Excludes days, or times of day on some days. */
export class DailyExcluder implements Excluder {
  constructor(private readonly daily: Daily) {}

  has(occurrence: number): boolean {
    return this.daily.has(occurrence);
  }

  span(time: number): Span | undefined {
    const own = segmentAt(this.daily.zone, time);
    const local = this.#local(time + own.offset);
    if (local === undefined) return undefined;
    const span = { start: startOf(time, own, local.start), end: endOf(time, own, local.end) };
    return this.daily.aligned === undefined ? span : whileAligned(span, time, own, this.daily.aligned.zone);
  }

  /** On the wall clock. */
  #local(wall: number): Span | undefined {
    const { days, hours } = this.daily;
    const day = Math.floor(wall / DAY);
    const hour = Math.floor((wall - day * DAY) / HOUR);
    if (!hasBit(hours, hour) || !hasDay(days, day)) return undefined;
    if (hours === ALL_HOURS)
      return { start: (leapBefore(days, day) + 1) * DAY, end: leapAfter(days, day) * DAY };
    const free = ~hours & ALL_HOURS;
    const end = nextBit(free, hour);
    return {
      start: day * DAY + (prevBit(free, hour) + 1) * HOUR,
      end: day * DAY + (end < 0 ? 24 : end) * HOUR,
    };
  }
}

function whileAligned({ start, end }: Span, time: number, own: Segment, zone: Zone | undefined) {
  if (time >= MINUTES_ALIGNED_SINCE) return { start: Math.max(start, MINUTES_ALIGNED_SINCE), end };
  const shown = segmentAt(zone, time);
  if ((own.offset - shown.offset) % MINUTE !== 0) return undefined;
  // A time that runs late after a gap, at the start of a segment, may not be on a whole minute.
  const first = Math.max(start, own.start, shown.start + 1);
  return first <= time ? { start: first, end: Math.min(end, own.end, shown.end) } : undefined;
}

export class TimesExcluder implements Excluder {
  /** @param allFrom time from which it is known to contain all times of the schedule */
  constructor(
    private readonly times: CompiledSchedule,
    private readonly allFrom: number = Number.POSITIVE_INFINITY,
  ) {}

  has(occurrence: number): boolean {
    return this.times.latest(occurrence) === occurrence;
  }

  span(time: number): Span | undefined {
    return time >= this.allFrom ? { start: this.allFrom, end: Number.POSITIVE_INFINITY } : undefined;
  }
}

/** Limits another excluder to the times from `start` to `end`. */
export class BoundedExcluder implements Excluder {
  constructor(
    private readonly inner: Excluder,
    private readonly bounds: Bounds,
  ) {}

  has(occurrence: number): boolean {
    return this.#within(occurrence) && this.inner.has(occurrence);
  }

  span(time: number): Span | undefined {
    const whole = this.#within(time) ? this.inner.span(time) : undefined;
    if (whole === undefined) return undefined;
    return {
      start: Math.max(whole.start, this.bounds.start),
      end: Math.min(whole.end, this.bounds.end + 1),
    };
  }

  #within(time: number): boolean {
    return time >= this.bounds.start && time <= this.bounds.end;
  }
}

/** The instant of the wall clock `local`, later than `time`; everything between the two is excluded. */
function endOf(time: number, segment: Segment, local: number): number {
  const end = local - segment.offset;
  if (end <= segment.end) return end;
  // If the clock goes back soon, earlier days come again; if not, only excluded times follow up to `local`.
  return segment.end - time <= MAX_CHANGE ? segment.end : Math.max(segment.end, local - MAX_OFFSET);
}

/** The same as `endOf`, for an instant not later than `time`. */
function startOf(time: number, segment: Segment, local: number): number {
  const start = local - segment.offset;
  const first = firstOf(time, segment);
  if (start >= first) return start;
  return time - segment.start <= MAX_CHANGE ? first : Math.min(first, local + MAX_OFFSET);
}

/** Start of the local times that a segment decides: a time that a gap delays counts as one before it. */
function firstOf(time: number, segment: Segment): number {
  return time > segment.start && segment.offset > segment.before ? segment.start + 1 : segment.start;
}
