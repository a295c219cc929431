import { setTimeout } from "node:timers/promises";

/**
 * Waits before a call that Redis refused is repeated: longer after each attempt, 5 s at most.
 * @param tries attempts so far, from 1
 */
export async function pauseAfter(tries: number): Promise<void> {
  await setTimeout(Math.min(100 * 2 ** tries, 5_000));
}
