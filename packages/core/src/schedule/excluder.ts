import { hasBit, hasSixty } from "./bits.js";
import type { Bounds } from "./bounds.js";
import { DAY, HOUR, MINUTE } from "./civil.js";
import type { Coverage } from "./coverage.js";
import { type DaySet, hasDay, leapAfter, leapBefore } from "./day-set.js";
import { type Fields, matchesLocal } from "./fields.js";
import type { CompiledSchedule } from "./types.js";
import { MAX_CHANGE, MAX_OFFSET, type Segment, segmentAt, type Zone } from "./zone.js";

/** Which occurrences of one schedule are taken away. */
export interface Excluder {
  has(occurrence: number): boolean;
  /** `occurrence` is excluded: no occurrence from it on to before this instant is left. */
  end(occurrence: number): number;
  /** No occurrence after this instant, up to `occurrence`, is left. */
  begin(occurrence: number): number;
}

/** How an occurrence is shown on a clock: with the zone's, where it only runs late, what it was meant to be. */
export type WallOf = (occurrence: number) => number;

/** Whole local days. */
export class DayExcluder implements Excluder {
  readonly #days: DaySet;
  readonly #zone: Zone | undefined;
  readonly #wallOf: WallOf;

  constructor(days: DaySet, zone: Zone | undefined, wallOf: WallOf) {
    this.#days = days;
    this.#zone = zone;
    this.#wallOf = wallOf;
  }

  has(occurrence: number): boolean {
    return hasDay(this.#days, Math.floor(this.#wallOf(occurrence) / DAY));
  }

  end(occurrence: number): number {
    const segment = segmentAt(this.#zone, occurrence);
    const wall = occurrence + segment.offset;
    if (wall !== this.#wallOf(occurrence)) return occurrence + 1;
    return endOf(occurrence, segment, leapAfter(this.#days, Math.floor(wall / DAY)) * DAY);
  }

  begin(occurrence: number): number {
    const segment = segmentAt(this.#zone, occurrence);
    const wall = occurrence + segment.offset;
    if (wall !== this.#wallOf(occurrence)) return occurrence - 1;
    return beginOf(occurrence, segment, (leapBefore(this.#days, Math.floor(wall / DAY)) + 1) * DAY - 1);
  }
}

/** Times of day on some days. */
export class FieldExcluder implements Excluder {
  readonly #fields: Fields;
  readonly #days: DaySet;
  readonly #zone: Zone | undefined;
  readonly #wallOf: WallOf;
  readonly #covers: Coverage;

  constructor(fields: Fields, days: DaySet, zone: Zone | undefined, wallOf: WallOf, covers: Coverage) {
    this.#fields = fields;
    this.#days = days;
    this.#zone = zone;
    this.#wallOf = wallOf;
    this.#covers = covers;
  }

  has(occurrence: number): boolean {
    return matchesLocal(this.#fields, this.#wallOf(occurrence));
  }

  end(occurrence: number): number {
    const segment = segmentAt(this.#zone, occurrence);
    const wall = occurrence + segment.offset;
    if (!this.#covers.minute || wall !== this.#wallOf(occurrence)) return occurrence + 1;
    const day = Math.floor(wall / DAY);
    if (this.#covers.day) return endOf(occurrence, segment, leapAfter(this.#days, day) * DAY);
    let hour = Math.floor((wall - day * DAY) / HOUR);
    if (this.#covers.hour) {
      while (hour < 24 && hasBit(this.#fields.hours, hour)) hour++;
      return Math.min(day * DAY + hour * HOUR - segment.offset, segment.end);
    }
    const start = day * DAY + hour * HOUR;
    let minute = Math.floor((wall - start) / MINUTE);
    while (minute < 60 && hasSixty(this.#fields.minutes, minute)) minute++;
    return Math.min(start + minute * MINUTE - segment.offset, segment.end);
  }

  begin(occurrence: number): number {
    const segment = segmentAt(this.#zone, occurrence);
    const wall = occurrence + segment.offset;
    if (!this.#covers.minute || wall !== this.#wallOf(occurrence)) return occurrence - 1;
    const day = Math.floor(wall / DAY);
    if (this.#covers.day) {
      return beginOf(occurrence, segment, (leapBefore(this.#days, day) + 1) * DAY - 1);
    }
    let hour = Math.floor((wall - day * DAY) / HOUR);
    if (this.#covers.hour) {
      while (hour >= 0 && hasBit(this.#fields.hours, hour)) hour--;
      return Math.max(day * DAY + (hour + 1) * HOUR - 1 - segment.offset, floorOf(occurrence, segment));
    }
    const start = day * DAY + hour * HOUR;
    let minute = Math.floor((wall - start) / MINUTE);
    while (minute >= 0 && hasSixty(this.#fields.minutes, minute)) minute--;
    return Math.max(start + (minute + 1) * MINUTE - 1 - segment.offset, floorOf(occurrence, segment));
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

  end(occurrence: number): number {
    return occurrence + 1;
  }

  begin(occurrence: number): number {
    return occurrence - 1;
  }
}

/** All occurrences from an instant on. */
export class FromOnExcluder implements Excluder {
  readonly #start: number;

  constructor(start: number) {
    this.#start = start;
  }

  has(occurrence: number): boolean {
    return occurrence >= this.#start;
  }

  end(): number {
    return Number.POSITIVE_INFINITY;
  }

  begin(): number {
    return this.#start - 1;
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
    return occurrence >= this.#bounds.start && occurrence <= this.#bounds.end && this.#inner.has(occurrence);
  }

  end(occurrence: number): number {
    return Math.min(this.#inner.end(occurrence), this.#bounds.end + 1);
  }

  begin(occurrence: number): number {
    return Math.max(this.#inner.begin(occurrence), this.#bounds.start - 1);
  }
}

/** The instant of the wall clock `local`, later than `time`; every day between the two is excluded. */
function endOf(time: number, segment: Segment, local: number): number {
  const end = local - segment.offset;
  if (end <= segment.end) return end;
  // A clock that soon goes back shows days before this one again; later than that, only excluded ones up to `local`.
  return segment.end - time <= MAX_CHANGE ? segment.end : Math.max(segment.end, local - MAX_OFFSET);
}

function beginOf(time: number, segment: Segment, local: number): number {
  const begin = local - segment.offset;
  const floor = floorOf(time, segment);
  if (begin >= floor) return begin;
  return time - segment.start <= MAX_CHANGE ? floor : Math.min(floor, local + MAX_OFFSET);
}

/** As far back as one segment says anything. What runs late after a gap stands for a time of before. */
function floorOf(time: number, segment: Segment): number {
  return time > segment.start && segment.offset > segment.before ? segment.start : segment.start - 1;
}
