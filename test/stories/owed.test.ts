import type { CatchUpPolicy, OverlapPolicy, Policies, TaskInput } from "@carillon/core";
import { type Operator, operatorOf } from "@carillon/ops";
import { type TestKit, testKit } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const QUEUE = "bells";
const START = Date.parse("2026-01-01T00:00:00Z");

/**
 * Past occurrences, owed after a pause or requested again. Jobs take 5 s and are due every 60 s; the workers are plain
 * ones.
 */
describe("past occurrences", () => {
  let kit: TestKit;
  let ops: Operator;
  beforeEach(async () => {
    kit = await testKit({ queues: [QUEUE], worker: false });
    ops = operatorOf(kit.client);
    await kit.bullWorker(QUEUE, async () => kit.sleep("5s"), { concurrency: 10 });
  });
  afterEach(async () => {
    await kit.close();
  });

  const put = (task: Partial<TaskInput> = {}) =>
    kit.client.put({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "60s" }, ...task });
  const minutes = (time: number) => (time - START) / 60_000;
  async function fired(): Promise<{ nominal: number; at: number; trigger: string }[]> {
    const runs = await kit.client.runs.list("t", { limit: 1_000 });
    return runs
      .sort((a, b) => a.enqueued - b.enqueued || a.nominal - b.nominal)
      .map(({ nominal, enqueued, trigger }) => ({
        nominal: minutes(nominal),
        at: minutes(enqueued),
        trigger,
      }));
  }

  describe("after a pause of ten and a half minutes", () => {
    async function resumed(catchUp: CatchUpPolicy, catchUpLimits?: Policies["catchUpLimits"]) {
      await put({ catchUp, catchUpLimits });
      await kit.client.pause("t", { note: "works on the mains", by: "eve" });
      await kit.advance("10m30s");
      expect(await fired()).toEqual([]);
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("2m");
      return { runs: await fired(), skips: await kit.client.runs.skips("t") };
    }

    it("skip: none of them", async () => {
      const { runs, skips } = await resumed("skip");
      expect(runs.map(({ nominal }) => nominal)).toEqual([11, 12]);
      expect(skips).toMatchObject([{ reason: "missed", from: START + 60_000, to: START + 600_000 }]);
    });

    it("one: the latest, for all", async () => {
      const { runs, skips } = await resumed("one");
      expect(runs.map(({ nominal, trigger }) => [nominal, trigger])).toEqual([
        [10, "catch-up"],
        [11, "schedule"],
        [12, "schedule"],
      ]);
      expect(skips).toMatchObject([{ reason: "missed", from: START + 60_000, to: START + 540_000 }]);
    });

    it("all: one after another", async () => {
      const { runs } = await resumed("all");
      expect(runs.map(({ nominal }) => nominal)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    });

    it("all, with overlap allowed: every one, at once", async () => {
      await put({ catchUp: "all", overlap: "allow" });
      await kit.client.pause("t");
      await kit.advance("10m30s");
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("1s");
      expect((await fired()).map(({ nominal }) => nominal)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });

    it("all, queued: every one, one at a time", async () => {
      await put({ catchUp: "all", overlap: "queue-all" });
      await kit.client.pause("t");
      await kit.advance("10m30s");
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("2m");
      expect((await fired()).map(({ nominal }) => nominal)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    });

    it("all within a window", async () => {
      const { skips } = await resumed("all", { window: "3m" });
      expect(skips.at(-1)).toMatchObject({ reason: "missed", from: START + 60_000, to: START + 420_000 });
    });

    it("at most the given number", async () => {
      await put({ catchUp: "all", overlap: "allow", catchUpLimits: { max: 4 } });
      await kit.client.pause("t");
      await kit.advance("10m30s");
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("1s");
      expect((await fired()).map(({ nominal }) => nominal)).toEqual([7, 8, 9, 10]);
      expect(await kit.client.runs.skips("t")).toMatchObject([
        { reason: "missed", from: START + 60_000, to: START + 360_000 },
      ]);
    });

    it("at a bounded rate", async () => {
      await put({ catchUp: "all", overlap: "allow", catchUpLimits: { every: "5s" } });
      await kit.client.pause("t");
      await kit.advance("10m30s");
      await kit.client.resume("t", { missed: "catch-up" });
      await kit.advance("12s");
      const runs = await fired();
      expect(runs.map(({ nominal }) => nominal)).toEqual([1, 2, 3]);
      expect(runs.map(({ at }) => Math.round((at - 10.5) * 60))).toEqual([0, 5, 10]);
    });

    it("from now: owed times are skipped, with author and reason", async () => {
      await put();
      await kit.client.pause("t", { note: "works on the mains", by: "eve" });
      expect((await kit.client.get("t")).paused).toMatchObject({ by: "eve", note: "works on the mains" });
      await kit.advance("10m30s");
      await kit.client.resume("t", { by: "eve" });
      await kit.advance("1m");
      expect((await fired()).map(({ nominal }) => nominal)).toEqual([11]);
      expect(await kit.client.runs.skips("t")).toMatchObject([
        { reason: "paused", from: START + 60_000, to: START + 600_000, by: "eve" },
      ]);
    });
  });

  it("pending occurrences survive an edit and a pause, and are deleted with their task", async () => {
    await kit.close();
    kit = await testKit({ queues: [QUEUE], worker: false });
    ops = operatorOf(kit.client);
    await kit.bullWorker(QUEUE, async () => kit.sleep("90s"));
    await put({ overlap: "queue-one" });
    await kit.advance("2m30s");
    await put({ overlap: "queue-one", payload: { edited: true } });
    await kit.client.pause("t");
    await kit.advance("5m");
    expect((await fired()).map(({ nominal }) => nominal)).toEqual([1]);
    await kit.client.resume("t");
    await kit.advance("1s");
    expect((await fired()).map(({ nominal }) => nominal)).toEqual([1, 2]);
    await kit.client.delete("t");
    await kit.advance("5m");
    expect(await kit.client.list()).toMatchObject({ tasks: [] });
  });

  describe("backfilled", () => {
    async function backfilled(
      overlap: OverlapPolicy,
      options: { overlap?: OverlapPolicy; every?: string } = {},
    ) {
      await put({ overlap, schedule: { every: "60s", start: new Date(START + 3_600_000).toISOString() } });
      await put({ overlap });
      await kit.client.pause("t");
      await kit.advance("30m");
      const range = { from: START + 60_000, to: START + 300_000 };
      expect(await ops.backfills.start({ id: "t", ...range, dryRun: true })).toEqual({
        id: undefined,
        total: 5,
      });
      expect(await fired()).toEqual([]);
      const { id } = await ops.backfills.start({ id: "t", ...range, ...options });
      await kit.advance("1m");
      return { status: await ops.backfills.get({ id: id as string }), runs: await fired() };
    }

    it("allow: all at once", async () => {
      const { status, runs } = await backfilled("allow");
      expect(status).toMatchObject({ state: "done", total: 5, enqueued: 5, skipped: 0 });
      expect(runs.map(({ nominal }) => nominal)).toEqual([1, 2, 3, 4, 5]);
      expect(runs.every(({ trigger }) => trigger === "backfill")).toBe(true);
    });

    it("queue-all: one after another", async () => {
      const { status, runs } = await backfilled("queue-all");
      expect(status).toMatchObject({ state: "done", enqueued: 5 });
      expect(new Set(runs.map(({ at }) => at)).size).toBe(5);
    });

    it("skip: those during a run are skipped", async () => {
      expect((await backfilled("skip")).status).toMatchObject({ state: "done", enqueued: 1, skipped: 4 });
    });

    it("under another policy, at a bounded rate", async () => {
      const { runs } = await backfilled("skip", { overlap: "allow", every: "10s" });
      expect(runs.map(({ at }) => Math.round((at - 30) * 60))).toEqual([0, 10, 20, 30, 40]);
    });

    it("until it is cancelled", async () => {
      await put({ overlap: "allow" });
      await kit.client.pause("t");
      await kit.advance("30m");
      const range = { from: START + 60_000, to: START + 1_800_000 };
      const { id } = await ops.backfills.start({ id: "t", ...range, every: "10s" });
      await kit.advance("25s");
      expect((await ops.backfills.cancel({ id: id as string })).changed).toBe(true);
      await kit.advance("5m");
      expect(await fired()).toHaveLength(3);
      expect(await ops.backfills.get({ id: id as string })).toMatchObject({
        state: "cancelled",
        enqueued: 3,
      });
    });
  });
});
