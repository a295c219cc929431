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

  /** Whether the call has taken as many steps as it may: its walks end early. */
  get spent(): boolean {
    return this.#left < 0;
  }

  /** Begins a slice; the time before it was spent waiting, not working. */
  begin(): void {
    this.#since = performance.now();
  }

  /** Goes through a walk, and lets others work between slices. Ends early once `spent`. @param steps of each search: see `scheduleSteps` */
  async *over<One>(walk: Iterable<One>, steps: number): AsyncGenerator<One> {
    for (const one of walk) {
      yield one;
      this.#left -= steps;
      if (this.spent) return;
      if (performance.now() - this.#since < SLICE) continue;
      await setImmediate();
      this.begin();
    }
  }
}
