import { operatorOf } from "@carillon/ops";
import { defineTask } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { describe, expect, it } from "vitest";
import { gate } from "../helpers.js";
import { anything, PATIENCE, Stand } from "./harness.js";

const stand = Stand.use();

describe("E1 a task type generates items and processes each in a job of its own, once", () => {
  it("100 ids make 100 concurrent children, each once; the run is final when they are", async () => {
    const done: { id: string; key: string; index: number }[] = [];
    let [atOnce, most, generated] = [0, 0, 0];
    const { promise: eight, resolve: open } = gate();
    const type = defineTask("fan-out", {
      queue: "bells",
      payload: anything,
      generate: () => {
        generated += 1;
        return Array.from({ length: 100 }, (_, n) => ({ id: `order-${n}` }));
      },
      process: async ({ id }, { index, idempotencyKey }) => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        if (most === 8) open();
        // No item ends before eight are running.
        await eight;
        if (id === "order-99") await last;
        atOnce -= 1;
        done.push({ id, index, key: idempotencyKey });
      },
    });
    const { promise: last, resolve: end } = gate();
    const worker = stand.worker([type], { concurrency: 8 });
    const client = stand.client();
    await worker.start();
    const run = await stand.run(client, "fan-out");

    await eventually(() => expect(done).toHaveLength(99), PATIENCE);
    // All items but one are done: the run's job waits for its children, and its record is not final.
    const job = await stand.queue("bells").getJob(run);
    expect(await job?.getState()).toBe("waiting-children");
    await eventually(
      async () => expect(await job?.getDependenciesCount()).toMatchObject({ processed: 99, unprocessed: 1 }),
      PATIENCE,
    );
    const before = await client.runs.get(run);
    expect(before.state).not.toBe("final");
    expect(before.finished).toBeUndefined();
    end();

    const after = await eventually(async () => {
      const record = await client.runs.get(run);
      return record.state === "final" && record;
    }, PATIENCE);
    expect(after).toMatchObject({ outcome: "succeeded", result: { total: 100, succeeded: 100, failed: 0 } });
    expect(done).toHaveLength(100);
    expect(new Set(done.map(({ id }) => id)).size).toBe(100);
    expect(new Set(done.map(({ key }) => key)).size).toBe(100);
    for (const { id, index } of done) expect(id).toBe(`order-${index}`);
    expect({ generated, most }).toEqual({ generated: 1, most: 8 });
    expect(await client.runs.stats("t")).toMatchObject({ runs: 1, successes: 1, open: 0 });
  });
});

describe("E1 tasks of one id and many owners, due at one instant, share nothing", () => {
  it("40 runs of 5 items, and 20 runs that fail at once: each item once, each error with its own owner", async () => {
    const [OWNERS, ITEMS] = [40, 5];
    const done: string[] = [];
    const types = [
      defineTask("fan-out", {
        queue: "bells",
        payload: anything,
        generate: () => Array.from({ length: ITEMS }, (_, n) => n),
        process: (n, { occurrence: { owner } }) => {
          done.push(`${owner} ${n}`);
          if (owner === "owner7" && n === 3) throw new Error("owner7's own");
          return `of ${owner}`;
        },
      }),
      defineTask("failing", {
        queue: "bells",
        payload: anything,
        handler: (_payload, { occurrence: { owner } }) => {
          throw new Error(`secret of ${owner}`);
        },
      }),
    ];
    const kit = await stand.kit({ types, start: "2026-01-01T00:00:00Z", concurrency: 20 });
    const tasks = Array.from({ length: OWNERS + OWNERS / 2 }, (_, n) => ({
      id: "sync",
      owner: `owner${n}`,
      queue: "bells",
      schedule: { at: "2026-01-01T00:01:00Z" },
      // One in three fails at once.
      type: n % 3 === 2 ? "failing" : "fan-out",
    }));
    await kit.client.putMany(tasks);
    await kit.advance("1m");
    const fans = tasks.filter(({ type }) => type === "fan-out");
    const each = fans.flatMap(({ owner }) => Array.from({ length: ITEMS }, (_, n) => `${owner} ${n}`));
    expect(done.sort()).toEqual(each.sort());
    for (const { owner, type } of tasks) {
      const [run] = await kit.client.runs.list({ id: "sync", owner });
      const failed = owner === "owner7" ? 1 : 0;
      const summary = { total: ITEMS, succeeded: ITEMS - failed, failed };
      if (type === "fan-out") expect(run).toMatchObject({ state: "final", result: summary });
      else
        expect(run).toMatchObject({
          outcome: "failed",
          error: expect.stringContaining(`secret of ${owner}\n`),
        });
      if (type === "failing") continue;
      const { items } = await operatorOf(kit.client).runs.items({ id: run?.id ?? "" });
      expect(items.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
      for (const item of items) {
        if (item.status === "failed") expect(`${owner} ${item.error}`).toMatch(/^owner7 Error: owner7's own/);
        else expect(item).toMatchObject({ status: "completed", result: `of ${owner}` });
      }
      expect(items.filter(({ status }) => status === "failed")).toHaveLength(failed);
    }
  });
});
