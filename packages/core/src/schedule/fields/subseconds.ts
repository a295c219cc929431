import { MINUTE } from "../civil.js";

/** Milliseconds within a minute: from `start`, each `repeat` (0: once), up to `stop`. */
export interface SubSecondRange {
  readonly start: number;
  readonly stop: number;
  readonly repeat: number;
}

/** Seconds with fractions, as calendar events may have them: too many values for a bitmask, so ranges. */
export class SubSeconds {
  readonly ranges: readonly SubSecondRange[];

  constructor(ranges: readonly SubSecondRange[]) {
    this.ranges = ranges;
  }

  /** Number of values in its ranges. */
  get size(): number {
    return this.ranges.reduce(
      (sum, { start, stop, repeat }) => sum + (repeat > 0 ? Math.floor((stop - start) / repeat) + 1 : 1),
      0,
    );
  }

  /** The first value at or after `ms`, or -1. */
  next(ms: number): number {
    let best = MINUTE;
    for (const { start, stop, repeat } of this.ranges) {
      const value =
        ms <= start ? start : repeat > 0 ? start + Math.ceil((ms - start) / repeat) * repeat : MINUTE;
      if (value <= stop && value < best) best = value;
    }
    return best === MINUTE ? -1 : best;
  }

  /** The last value at or before `ms`, or -1. */
  prev(ms: number): number {
    let best = -1;
    for (const { start, stop, repeat } of this.ranges) {
      if (ms < start) continue;
      const top = Math.min(ms, stop);
      const value = repeat > 0 ? start + Math.floor((top - start) / repeat) * repeat : start;
      if (value > best) best = value;
    }
    return best;
  }
}
