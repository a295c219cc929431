import { describe, expect, test } from "vitest";
import { nextTimes, yearOf } from "./next-times.js";

const at = (minutes: number) => minutes * 60_000;
const timesOf = (found: Awaited<ReturnType<typeof nextTimes>>) =>
  found.times.map(({ time }) => time / 60_000);
/** No time budget: on a busy machine any might be too short. */
const UNHURRIED = Number.POSITIVE_INFINITY;

describe("the next times", () => {
  test("continue from slice to slice without a gap", async () => {
    const found = await nextTimes({ every: "1m" }, { from: 0, count: 12 }, UNHURRIED);
    expect(timesOf(found)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(found.exhausted).toBe(false);
  });

  test("name the excluded times between them, and the end", async () => {
    const except = [{ at: at(3) }, { at: at(8) }];
    const end = new Date(at(9)).toISOString();
    const found = await nextTimes({ every: "1m", except, end }, { from: 0, count: 12 }, UNHURRIED);
    expect(timesOf(found)).toEqual([1, 2, 4, 5, 6, 7, 9]);
    expect(found.excluded.map(({ time }) => time)).toEqual([at(3), at(8)]);
    expect(found.exhausted).toBe(true);
  });

  test("yield to others between slices", async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    await nextTimes({ every: "1m" }, { from: 0, count: 50 }, UNHURRIED);
    clearImmediate(next);
    expect(turns).toBeGreaterThanOrEqual(9);
  });

  test("name up to a hundred excluded times", async () => {
    const found = await nextTimes(
      { every: "1m", except: [{ every: "2m" }] },
      { from: 0, count: 150 },
      UNHURRIED,
    );
    expect([found.times.length, found.excluded.length]).toEqual([150, 100]);
  });

  test("stop at the time limit", async () => {
    const found = await nextTimes({ every: "1m" }, { from: 0, count: 100 }, 0);
    expect(timesOf(found)).toEqual([1, 2, 3, 4, 5]);
    expect(found.exhausted).toBe(false);
  });
});

test("the days of a year stop at the time limit", async () => {
  const schedule = { every: "1h" };
  expect(await yearOf(schedule, { from: 0 }, UNHURRIED)).toHaveLength(366);
  expect(await yearOf(schedule, { from: 0 }, 0)).toHaveLength(1);
});
