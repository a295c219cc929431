import { MINUTE } from "./civil.js";
import type { Excluder } from "./excluder.js";
import type { EveryInterval } from "./simple.js";
import { type Segment, segmentAt, type Zone } from "./zone.js";

/*
 * Exclusions on another clock than that of their schedule. What one says of the other holds as long as neither is
 * changed; leaps end there.
 */

/**
 * Times of day on another clock than the schedule's: leaps go as far as the two keep their distance, or from one day to
 * another, where the distance does not matter.
 */
export class OtherClockExcluder implements Excluder {
  readonly #zone: Zone | undefined;
  readonly #target: Zone | undefined;
  readonly #ahead: (minutes: number) => Excluder;
  readonly #whole: Excluder | undefined;

  /**
   * @param ahead the excluder while its clock is so many minutes ahead of the schedule's
   * @param whole where and since when it has whole days, the excluder of these: the distance does not matter
   */
  constructor(
    zone: Zone | undefined,
    target: Zone | undefined,
    ahead: (minutes: number) => Excluder,
    whole: Excluder | undefined,
  ) {
    this.#zone = zone;
    this.#target = target;
    this.#ahead = remembered(ahead);
    this.#whole = whole;
  }

  has(occurrence: number): boolean {
    return this.#ahead(0).has(occurrence);
  }

  end(occurrence: number): number {
    if (this.#whole?.has(occurrence)) return this.#whole.end(occurrence);
    const { excluder, own, target } = this.#at(occurrence);
    return excluder === undefined ? occurrence + 1 : Math.min(excluder.end(occurrence), own.end, target.end);
  }

  begin(occurrence: number): number {
    if (this.#whole?.has(occurrence)) return this.#whole.begin(occurrence);
    const { excluder, own, target } = this.#at(occurrence);
    return excluder === undefined
      ? occurrence - 1
      : Math.max(excluder.begin(occurrence), own.start - 1, target.start);
  }

  /** No excluder: they are not whole minutes apart, or it may be a time that only runs late, and is on no pattern. */
  #at(occurrence: number): { excluder: Excluder | undefined; own: Segment; target: Segment } {
    const own = segmentAt(this.#zone, occurrence);
    const target = segmentAt(this.#target, occurrence);
    const minutes = (own.offset - target.offset) / MINUTE;
    const sure = Number.isInteger(minutes) && occurrence !== target.start;
    return { excluder: sure ? this.#ahead(minutes) : undefined, own, target };
  }
}

/**
 * The times of a fixed interval which, while the schedule's clock is not changed, has all of the schedule's times or
 * none of them; see `isAligned`.
 */
export class AlignedExcluder implements Excluder {
  readonly #times: EveryInterval;
  readonly #target: Zone | undefined;

  constructor(times: EveryInterval, target: Zone | undefined) {
    this.#times = times;
    this.#target = target;
  }

  has(occurrence: number): boolean {
    return this.#times.latest(occurrence) === occurrence;
  }

  // A time at the start of a segment may be one that only runs late.
  end(occurrence: number): number {
    const segment = segmentAt(this.#target, occurrence);
    return occurrence === segment.start ? occurrence + 1 : segment.end;
  }

  begin(occurrence: number): number {
    const { start } = segmentAt(this.#target, occurrence);
    return occurrence === start ? occurrence - 1 : Math.max(start, this.#times.origin - 1);
  }
}

/** Asked once for each number. */
function remembered<T>(make: (of: number) => T): (of: number) => T {
  const known = new Map<number, T>();
  return (of) => {
    if (!known.has(of)) known.set(of, make(of));
    return known.get(of)!;
  };
}
