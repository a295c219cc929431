import { setTimeout as delay } from "node:timers/promises";

/** Between two attempts of which many at once outdate each other: without it they stay in step. 500 ms at most. */
export async function outOfStep(attempt: number): Promise<void> {
  await delay(Math.random() * Math.min(5 * 2 ** attempt, 500));
}
