import { describe, expect, it } from "vitest";
import { Semaphore } from "../../src/worker/semaphore.js";
import { Suspects } from "../../src/worker/suspects.js";

describe("jobs whose worker died", () => {
  it("come back one after another, and start one at a time", () => {
    const suspects = new Suspects();
    // Three suspects taken at the same time: none starts while the others are present.
    expect(["a", "b", "c"].map((job) => suspects.admit(job, 0))).toEqual([1_000, 1_250, 1_500]);
    expect(suspects.admit("a", 1_000)).toBeUndefined();
    // The first one is still running: its probation ends then.
    expect(suspects.admit("b", 1_250)).toBe(6_000);
    suspects.ended("a");
    expect(suspects.admit("c", 1_500)).toBeUndefined();
    expect(suspects.admit("b", 6_000)).toBe(6_500);
    expect(suspects.admit("b", 6_500)).toBeUndefined();
  });

  it("all start in the end, however many there are", () => {
    const suspects = new Suspects();
    const waiting = Array.from({ length: 2_500 }, (_, i) => ({ job: `j${i}`, at: 0 }));
    let now = 0;
    for (let steps = 0; steps < 50_000 && waiting.length > 0; steps++) {
      waiting.sort((a, b) => a.at - b.at);
      const next = waiting.shift() as (typeof waiting)[0];
      now = Math.max(now, next.at);
      const at = suspects.admit(next.job, now);
      if (at === undefined) suspects.ended(next.job);
      else waiting.push({ job: next.job, at });
    }
    expect(waiting).toEqual([]);
    expect(now).toBeLessThan(30 * 60_000);
  });

  it("are not delayed when the clock is put back", () => {
    const suspects = new Suspects();
    expect(suspects.admit("a", 1e12)).toBe(1e12 + 1_000);
    expect(suspects.admit("b", 0)).toBe(300_250);
    // Holds also while one is running.
    expect(suspects.admit("a", 1e12 + 1_000)).toBeUndefined();
    expect(suspects.admit("b", 1_000)).toBeUndefined();
  });
});

describe("a semaphore", () => {
  it("admits up to its limit, then one for each that leaves, in order", async () => {
    const semaphore = new Semaphore(2);
    const entered: number[] = [];
    const all = [1, 2, 3, 4].map((n) => semaphore.enter().then((yes) => yes && entered.push(n)));
    await Promise.all(all.slice(0, 2));
    expect(entered).toEqual([1, 2]);
    semaphore.leave();
    await all[2];
    expect(entered).toEqual([1, 2, 3]);
    semaphore.close();
    expect(await all[3]).toBe(false);
    expect(await semaphore.enter()).toBe(false);
  });

  it("frees a place that nobody waited for", async () => {
    const semaphore = new Semaphore(1);
    await semaphore.enter();
    semaphore.leave();
    expect(await semaphore.enter()).toBe(true);
  });
});
