import { setTimeout } from "node:timers/promises";

/** Before what Redis did not take is tried again, after so many tries: longer each time, 5 s at most. */
export async function pauseAfter(tries: number): Promise<void> {
  await setTimeout(Math.min(100 * 2 ** tries, 5_000));
}
