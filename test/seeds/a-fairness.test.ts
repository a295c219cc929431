import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { describe, expect, test, vi } from "vitest";
import { BatchSize } from "../../packages/scheduler/src/claim/batch-size.js";
import { SILENT } from "../helpers.js";
import { Stand } from "./harness.js";

const stand = Stand.use();
const START = Date.parse("2026-01-01T00:00:00Z");
const CROWD = 1_000;

/** Shards of a queue's due index: nodes claim each of them batch by batch. */
const SLICES = 8;

describe("A15 a crowd does not starve another owner's single task", () => {
  test.each([
    ["due before them all", -1],
    ["due at the same moment as each of them", undefined],
    ["due in their middle", 500],
    ["due after them all", 1_001],
  ])("1,000 of a and 1 of b, %s: b is in the first batch", async (_when, place) => {
    const { store, clock } = await stand.virtual("bells", START);
    const client = new Client({ store });
    const at = (n: number | undefined) => ({ at: START + 10_000 + (place === undefined ? 0 : (n ?? 0) * 2) });
    const task = { type: "ring", queue: "bells" };
    await client.putMany(
      Array.from({ length: CROWD }, (_, n) => ({ ...task, owner: "a", id: `t${n}`, schedule: at(n) })),
    );
    await client.put({ ...task, owner: "b", id: "t", schedule: at(place) });

    // The shard of task b, and the other tasks that are due there.
    const slices = await Promise.all(
      Array.from({ length: SLICES }, (_, n) =>
        stand.admin.zrange(`{${stand.namespace}:bells}:~due:${n}`, 0, "-1"),
      ),
    );
    const slice = slices.find((names) => names.includes("b/t")) ?? [];
    expect(slices.flat()).toHaveLength(CROWD + 1);
    expect(slice.length).toBeGreaterThan(80);

    // Batches shrink on a busy machine.
    const size = vi.spyOn(BatchSize.prototype, "current", "get").mockReturnValue(40);
    stand.later(() => size.mockRestore());
    const batches: string[][] = [];
    const { commit } = store.claims;
    store.claims.commit = (...all) => {
      batches.push(all[1].map(({ entry }) => entry.local));
      return commit.apply(store.claims, all);
    };
    await clock.set(START + 20_000);
    await new Scheduler({ store, logger: SILENT }).tick();
    const jobs = await stand.queue("bells").getWaiting();
    expect(jobs).toHaveLength(CROWD + 1);
    // Batches, in the order in which they were committed.
    const first = batches.findIndex((names) => names.some((name) => slice.includes(name)));
    expect(batches[first]).toContain("b/t");
    // There is more than one batch.
    expect(batches.length).toBeGreaterThan(2 * SLICES);
  });
});
