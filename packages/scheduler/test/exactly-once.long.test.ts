import { parseTask } from "@carillon/core";
import { Scheduler } from "@carillon/scheduler";
import { bullPrefix, type Sabotage, type Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { checkOccurrences, type VirtualClock, virtualStore } from "@carillon/testing";
import { Queue } from "bullmq";
import { describe, expect, it } from "vitest";
import { SILENT, sharedRedis } from "../../../test/helpers.js";

const QUEUE = "bells";
let serial = 0;

describe("exactly-once with several nodes", () => {
  const redis = sharedRedis();

  /**
   * Runs five nodes on one virtual clock, all of which tick every second for a minute; 20 tasks, each due every second.
   */
  async function run(sabotage: readonly (Sabotage | "mutex")[]) {
    serial += 1;
    const namespace = `n${serial}`;
    const connection = redis.url;
    const stores: Store[] = [];
    const nodes: Scheduler[] = [];
    let clock: VirtualClock | undefined;
    for (let i = 0; i < 5; i++) {
      const made = await virtualStore(withSeams({ connection, namespace, queues: [QUEUE] }, { sabotage }));
      clock = made.clock;
      stores.push(made.store);
      nodes.push(new Scheduler({ store: made.store, nodeId: `node-${i}`, logger: SILENT }));
    }
    const first = stores[0] as Store;
    const tasks = Array.from({ length: 20 }, (_, i) =>
      parseTask({
        id: `t${i}`,
        type: "noop",
        queue: QUEUE,
        schedule: { every: "1s" },
        overlap: "allow",
        catchUp: "all",
      }),
    );
    await first.tasks.put(QUEUE, tasks);
    for (let second = 0; second < 60; second++) {
      await clock?.advance(1_000);
      await Promise.all(nodes.map((node) => node.tick()));
    }
    // Claims the rest, which nodes without the mutex left for later.
    for (const node of nodes) await node.tick();

    const bull = first.connect("patient");
    const queue = new Queue(QUEUE, { connection: bull, prefix: bullPrefix(namespace, QUEUE) });
    const jobs = await queue.getJobs(["wait"]);
    await queue.close();
    bull.disconnect();
    for (const store of stores) await store.close();
    return { jobs, ...checkOccurrences(jobs, () => ({ every: "1s" })) };
  }

  it("holds with mutex and fence", async () => {
    const { jobs, duplicates, gaps, early } = await run([]);
    expect({ duplicates, gaps, early }).toEqual({ duplicates: [], gaps: [], early: [] });
    expect(jobs).toHaveLength(20 * 60);
  });

  it("holds without the mutex: the fence alone decides", async () => {
    const { jobs, duplicates, gaps, early } = await run(["mutex"]);
    expect({ duplicates, gaps, early }).toEqual({ duplicates: [], gaps: [], early: [] });
    expect(jobs).toHaveLength(20 * 60);
  });

  it("fails without the fence, as a positive control", async () => {
    const { duplicates } = await run(["mutex", "fence"]);
    expect(duplicates.length).toBeGreaterThan(0);
  });
});
