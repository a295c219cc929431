import { expect } from "vitest";

/**
 * A hang or a long walk takes seconds: `run` is quick. What else goes on on the machine may hold up one go, but not each of three.
 *
 * @param limit in ms
 * @returns what the last go returned
 */
export function soon<T>(limit: number, run: () => T): T {
  let least = Number.POSITIVE_INFINITY;
  let result: T;
  let tries = 0;
  do {
    const begin = performance.now();
    result = run();
    least = Math.min(least, performance.now() - begin);
    tries += 1;
  } while (least >= limit && tries < 3);
  expect(least).toBeLessThan(limit);
  return result;
}
