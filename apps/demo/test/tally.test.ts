import type { Run, Skip, Task } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { Tally } from "../src/tally.js";

const task = (cursor: number, ...pending: number[]) =>
  ({
    id: "t",
    owner: "system",
    queue: "q",
    schedule: { every: "10s" },
    cursor,
    pending: pending.map((nominal) => ({ nominal })),
  }) as unknown as Task;
const run = (nominal: number, id = `r${nominal}`) => ({ id, nominal, trigger: "schedule" }) as Run;
const skip = (from: number, to: number) => ({ reason: "overlap", from, to, decisions: 2 }) as Skip;

describe("the demo's tally, from records alone", () => {
  it("finds nothing wrong if each time has a run or a skip", () => {
    const tally = new Tally();
    tally.learn(task(40_000), [run(40_000), run(10_000)], [skip(20_000, 30_000)]);
    expect([tally.enqueued, tally.skipped, tally.missed, tally.doubled]).toEqual([2, 2, 0, 0]);
  });

  it("does not miss a time that waits for a run to end", () => {
    const tally = new Tally();
    tally.learn(task(20_000, 20_000), [run(10_000)], []);
    expect([tally.enqueued, tally.missed]).toEqual([1, 0]);
  });

  it("counts a time without either as missed, and one with two runs as doubled", () => {
    const tally = new Tally();
    tally.learn(task(40_000), [run(40_000), run(40_000, "again"), run(10_000)], [skip(20_000, 20_000)]);
    expect([tally.missed, tally.doubled]).toEqual([1, 1]);
  });

  it("remembers runs and skips that the records no longer have", () => {
    const tally = new Tally();
    tally.learn(task(20_000), [run(10_000)], [skip(20_000, 20_000)]);
    tally.learn(task(30_000), [run(30_000)], []);
    expect([tally.enqueued, tally.missed]).toEqual([2, 0]);
  });

  it("checks nothing from before the oldest entry that the skips had when the tally began", () => {
    const tally = new Tally();
    tally.learn(task(50_000), [run(50_000), run(10_000)], [skip(40_000, 40_000)]);
    expect(tally.missed).toBe(0);
    tally.learn(task(70_000), [run(70_000)], []);
    expect(tally.missed).toBe(1);
  });
});
