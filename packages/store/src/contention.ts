import { setTimeout as delay } from "node:timers/promises";
import { Turns } from "./turns.js";

/** How often one whose turn it is decides anew. */
const TRIES = 20;

/**
 * For decisions that are outdated by each other: of many about one task only one can be first. Those of this process that were not
 * go on one after the other, so that each competes with other processes only, and with those a little out of step.
 */
export class Contention {
  #turns = new Turns();

  /**
   * @param names what it is about
   * @param decide reads, decides and writes; undefined where someone else was first
   * @param freely tries before it waits for its turn. 0: what was asked for first is done first
   * @returns undefined where someone else was first each time
   */
  async over<T>(
    names: readonly string[],
    decide: () => Promise<T | undefined>,
    freely = 1,
  ): Promise<T | undefined> {
    for (let i = 0; i < freely; i++) {
      const decided = await decide();
      if (decided !== undefined) return decided;
    }
    return this.#turns.take(names, async () => {
      for (let i = 0; i < TRIES; i++) {
        if (i > 0) await outOfStep(i);
        const decided = await decide();
        if (decided !== undefined) return decided;
      }
      return undefined;
    });
  }

  /** As in a process that has just begun: nobody waits for anybody. */
  forget(): void {
    this.#turns = new Turns();
  }
}

/** 500 ms at most. */
async function outOfStep(attempt: number): Promise<void> {
  await delay(Math.random() * Math.min(5 * 2 ** attempt, 500));
}
