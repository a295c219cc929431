import { setTimeout } from "node:timers/promises";

/** Waits before something that Redis did not take is tried again: longer after each try, 5 s at most. @param tries made so far, from 1 */
export async function pauseAfter(tries: number): Promise<void> {
  await setTimeout(Math.min(100 * 2 ** tries, 5_000));
}
