import { type Bounds, bounded } from "./bounds.js";
import { MAX_TIME } from "./civil.js";
import { EveryInterval } from "./simple.js";
import type { CompiledSchedule } from "./types.js";

/**
 * A fixed delay after the finish of a run: `next(finish)` is `finish + delay`, not before the start, and later by whole
 * delays while that is excluded. It has no times of its own, so that nothing is the latest of them.
 */
export class DelayAfterFinish implements CompiledSchedule {
  readonly #delay: number;
  readonly #bounds: Bounds;
  readonly #leftOf: (times: EveryInterval) => CompiledSchedule;

  /** @param leftOf what exclusions leave of the times that follow one finish */
  constructor(
    delay: number,
    bounds: Bounds,
    leftOf = (times: EveryInterval): CompiledSchedule => bounded(times, bounds),
  ) {
    this.#delay = delay;
    this.#bounds = bounds;
    this.#leftOf = leftOf;
  }

  next(after: number): number | undefined {
    const { start } = this.#bounds;
    const first = after < start ? start : Math.max(after, -MAX_TIME) + this.#delay;
    if (!(first <= this.#bounds.end)) return undefined;
    return this.#leftOf(new EveryInterval(this.#delay, first)).next(first - 1);
  }

  latest(): undefined {
    return undefined;
  }
}
