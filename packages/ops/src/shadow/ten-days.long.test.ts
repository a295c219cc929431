import { defineTask } from "@carillon/sdk";
import { firedSince, readBullSchedulers } from "@carillon/store/internal";
import { testKit } from "@carillon/testing";
import { Queue, Worker } from "bullmq";
import { expect, it } from "vitest";
import { z } from "zod";
import { importBullmq } from "../import/bullmq.js";
import { operatorOf } from "../operator.js";

const QUEUE = "bells";
/** Summer time begins in Europe on the 29th. */
const START = Date.parse("2026-03-24T23:00:00Z");
const SCHEDULERS = {
  even: { pattern: "0 */2 * * *", tz: "UTC" },
  weekdays: { pattern: "0 9 * * 1-5", tz: "Europe/Berlin" },
  night: { pattern: "30 2 * * *", tz: "Europe/Berlin" },
  monday: { pattern: "0 0 1-7 * 1", tz: "America/Sao_Paulo" },
  every: { every: 4 * 3_600_000, offset: 60_000 },
};

it("shadows of imported schedulers fire for 10 days when BullMQ does, across a clock change", async () => {
  const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });
  const kit = await testKit({ types: [ring], start: START });
  const options = { connection: { host: "127.0.0.1", port: kit.redis.port } };
  const queue = new Queue(QUEUE, options);
  const worker = new Worker(QUEUE, null as never, { ...options, autorun: false });
  const redis = kit.store.connect("patient");
  try {
    for (const [id, repeat] of Object.entries(SCHEDULERS))
      await queue.upsertJobScheduler(id, repeat, { name: "ring" });
    const found = await readBullSchedulers(redis, { queue: QUEUE });
    for (const { task } of importBullmq(found, { now: kit.now })) {
      expect(task).toBeDefined();
      if (task) await kit.client.put({ ...task, enabled: true, mode: "shadow" });
    }
    const { shadow } = operatorOf(kit.client);
    for (let hour = 0; hour < 240; hour++) {
      await kit.advance("1h");
      for (let job = true; job; ) {
        const next = await worker.getNextJob("t", { block: false });
        await next?.moveToCompleted("", "t", false);
        job = next !== undefined;
      }
    }
    const { fired } = await firedSince({ redis, prefix: "bull", queue: QUEUE }, "0");
    let same = 0;
    for (const [id, times] of fired) {
      await shadow.observe({ id, times: times.map(({ nominal }) => ({ nominal })) });
      const report = await shadow.report({ id, since: START, tolerance: 1 });
      expect([id, report.differences]).toEqual([id, []]);
      same += report.same;
    }
    expect([...fired.keys()].sort()).toEqual(Object.keys(SCHEDULERS).sort());
    // 120 even hours, 60 intervals, 10 nights, 8 weekdays, and some of the others.
    expect(same).toBeGreaterThan(195);
  } finally {
    redis.disconnect();
    await worker.close();
    await queue.close();
    await kit.close();
  }
});
