import { setTimeout as delay } from "node:timers/promises";
import { KeyedLock } from "./keyed-lock.js";

/** Attempts of a write that holds the lock. */
const TRIES = 20;

/**
 * Optimistic writes to one task invalidate each other. Losers within this process retry one at a time, with random
 * backoff against other processes.
 */
export class OptimisticWrites {
  #lock = new KeyedLock();

  /**
   * @param names the tasks that are written
   * @param decide reads, decides and writes; undefined if another write came first
   * @param freely attempts without the lock. 0: writes to one task are made in the order of their calls
   * @returns undefined if another write came first each time
   */
  async write<T>(
    names: readonly string[],
    decide: () => Promise<T | undefined>,
    freely = 1,
  ): Promise<T | undefined> {
    for (let i = 0; i < freely; i++) {
      const decided = await decide();
      if (decided !== undefined) return decided;
    }
    return this.#lock.take(names, async () => {
      for (let i = 0; i < TRIES; i++) {
        if (i > 0) await backOff(i);
        const decided = await decide();
        if (decided !== undefined) return decided;
      }
      return undefined;
    });
  }

  /** Releases all locks, as in a process that has just started. */
  forget(): void {
    this.#lock = new KeyedLock();
  }
}

/** Waits 500 ms at most. */
async function backOff(attempt: number): Promise<void> {
  await delay(Math.random() * Math.min(5 * 2 ** attempt, 500));
}
