import { parseTask } from "@carillon/core";
import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { eventually, startFaultProxy, startRedis } from "@carillon/testing";
import { expect, test } from "vitest";
import { SILENT } from "../../../test/helpers.js";

// In a half-open connection, requests or their answers are lost and no side closes it. The client must.
test("a node replaces a connection that never answers, and continues to claim", async () => {
  const redis = await startRedis();
  const proxy = await startFaultProxy(redis);
  const store = new Store({ connection: redis.url, namespace: "half" });
  const logger = SILENT;
  const node = new Scheduler({ connection: proxy.url, namespace: "half", unsafeRedis: "warn", logger });
  try {
    const task = { id: "t", type: "noop", queue: "bells", schedule: { every: "200ms" }, overlap: "allow" };
    await store.tasks.put("bells", [parseTask({ ...task, catchUp: "all" })]);
    let decided = 0;
    node.on("decided", () => {
      decided += 1;
    });
    await node.start();
    await eventually(() => expect(decided).toBeGreaterThan(2));
    await proxy.withhold("answer", "evalsha");
    decided = 0;
    await eventually(() => expect(decided).toBeGreaterThan(10));
    const runs = await store.runs.list({ queue: "bells", owner: "system", id: "t" }, 1_000);
    expect(new Set(runs.map(({ key }) => key)).size).toBe(runs.length);
  } finally {
    await node.stop();
    await store.close();
    await proxy.close();
    await redis.stop();
  }
});
