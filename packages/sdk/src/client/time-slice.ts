import { setImmediate } from "node:timers/promises";

/** Work without a break, in ms: the longest that others in the process wait. */
const SLICE = 20;
/** Steps of schedules in one call. Counted, so that the same question has the same answer however busy the machine is. */
const MOST_STEPS = 250_000;

/**
 * Divides long work into slices, so that timers, jobs and requests of the process go on between them, and no call works
 * for ever.
 */
export class TimeSlice {
  #since = performance.now();
  #left: number;

  /** @param steps of schedules in one call */
  constructor(steps = MOST_STEPS) {
    this.#left = steps;
  }

  /** Begins a slice; the time before it was spent waiting, not working. */
  begin(): void {
    this.#since = performance.now();
  }

  /** Counts the steps of a search; call it after each. @param steps see `scheduleSteps` @returns whether to call `next` */
  took(steps: number): boolean {
    this.#left -= steps;
    return this.#left < 0 || performance.now() - this.#since >= SLICE;
  }

  /** Ends a slice and lets others work. False: the call has taken as many steps as it may. */
  async next(): Promise<boolean> {
    if (this.#left < 0) return false;
    await this.pass();
    return true;
  }

  /** The same as `next`, for work that is bounded otherwise. */
  async pass(): Promise<void> {
    await setImmediate();
    this.begin();
  }
}
