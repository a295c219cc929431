import { beforeEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { Bench, QUEUE, START } from "../../store/test/bench.js";
import { type Claims, claimsOn } from "./claiming.js";

/** Time as of which each decision below is made, ahead of it. */
const AT = START + 30_000;

describe("a node whose estimate of Redis' clock is ahead", () => {
  const redis = sharedRedis();
  const bench = Bench.use(() => redis.url);
  let node: Claims;
  /** Error of the node's clock, in ms. */
  let lead = 0;
  beforeEach(async () => {
    lead = 0;
    node = claimsOn(bench, () => bench.clock.now - START + lead);
  });

  const freeze = (more: object) =>
    bench.store.freezes.put({
      ...{ id: "f", all: true, from: START, until: AT, created: START },
      ...more,
    });
  const runs = async () => (await bench.store.runs.list(bench.name("t"), 10)).map(({ enqueued }) => enqueued);
  const claim = () => node.claim(QUEUE);
  async function firstFails(delay: "2s" | "5s"): Promise<void> {
    await bench.put({ id: "t", schedule: { every: "25s" }, rerun: { delay, jitter: 0 } });
    await bench.clock.set(START + 25_000);
    await claim();
    const [run = ""] = await bench.store.runs.open(bench.name("t"));
    await bench.work("t", run, { outcome: "failed" });
    await bench.workAll();
  }

  const CASES: Record<string, () => Promise<void>> = {
    async "a one-off that a freeze holds"() {
      await bench.put({ id: "t", schedule: { at: START + 5_000 } });
      await freeze({});
      await bench.clock.set(START + 5_000);
      await claim();
    },
    async "a one-off of a task that is paused until then"() {
      await bench.put({ id: "t", schedule: { at: START + 5_000 } });
      await freeze({ all: false, tasks: [bench.name("t")] });
      await bench.clock.set(START + 5_000);
      await claim();
    },
    async "a retry that a window of a freeze holds"() {
      await firstFails("2s");
      await freeze({ until: undefined, schedule: { cron: "* * * * *" }, length: 30_000 });
      await bench.clock.set(START + 27_000);
      await claim();
    },
    async "the retry of a run that failed"() {
      await firstFails("5s");
    },
    async "a time of a backlog that its pace puts off"() {
      const catchUpLimits = { every: "10s" } as const;
      await bench.put({
        id: "t",
        overlap: "allow",
        schedule: { every: "5s" },
        catchUp: "all",
        catchUpLimits,
      });
      await bench.clock.set(START + 20_000);
      await claim();
    },
    async "a time of the schedule"() {
      await bench.put({ id: "t", schedule: { every: "30s" } });
    },
  };

  for (const [what, arrange] of Object.entries(CASES)) {
    it.each([10, 100, 2_000])(`commits ${what} at its time by Redis' clock, not %i ms before`, async (ms) => {
      await arrange();
      const before = await runs();
      await bench.clock.set(AT - 2_500);
      await node.prepare(QUEUE, 3_000);
      await bench.clock.set(AT - ms);
      lead = ms;
      expect(node.clock.now()).toBe(AT);
      await claim();
      expect(await runs()).toEqual(before);
      await bench.clock.set(AT - 1);
      await claim();
      expect(await runs()).toEqual(before);
      await bench.clock.set(AT);
      await claim();
      expect(await runs()).toEqual([AT, ...before]);
    });
  }

  it("decides again if the clock of Redis goes back behind its decision, and the task is still due", async () => {
    await bench.put({ id: "t" });
    await bench.clock.set(START + 15_000);
    await node.claim(QUEUE, () => false);
    expect(await runs()).toEqual([]);
    await bench.clock.set(START + 12_000);
    await claim();
    expect(await runs()).toEqual([START + 12_000]);
  });
});
