import { operatorOf } from "@carillon/ops";
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { lastingKeys, SILENT, sharedRedis } from "../helpers.js";

const anything = z.looseObject({});

const redis = sharedRedis();
let admin: Redis;
beforeAll(async () => {
  admin = new Redis(redis.url);
});
afterAll(async () => {
  admin.disconnect();
});

/** What destinations of alerts were told: a node keeps it for a day, in a queue that stays with it. */
const TOLD = [
  ...["collected", "digests", "next"].map((key) => `{carillon:carillon-alerts}:~${key}`),
  ...["events", "id", "marker", "meta"].map((key) => `{carillon:carillon-alerts}:carillon-alerts:${key}`),
  "{carillon}:queues",
];

/** Keys that do not expire: some are kept for a while, to tell requests that arrive late from new ones. */
it("no key of ours or of BullMQ is left that does not expire when all tasks are deleted and the nodes stopped", async () => {
  let runs = 0;
  const ok = defineTask("ok", {
    queue: "bells",
    payload: anything,
    handler: (_payload, { log }) => {
      runs += 1;
      log("rang");
    },
  });
  const bad = defineTask("bad", {
    queue: "bells",
    payload: anything,
    handler: () => {
      runs += 1;
      throw new Error("cracked");
    },
  });
  const many = defineTask("many", {
    queue: "chimes",
    payload: anything,
    generate: () => [1, 2],
    process: () => {},
  });
  const worker = new Worker({ connection: redis.url, types: [ok, bad, many], logger: SILENT });
  const node = new Scheduler({ connection: redis.url, logger: SILENT });
  const client = new Client({ connection: redis.url });
  await node.start();
  await worker.start();
  await operatorOf(client).calendars.put({ name: "holidays", entries: ["2026-12-25"] });
  await operatorOf(client).tokens.create({ name: "ci", role: "viewer" });
  const schedule = { every: "1s" };
  for (let i = 0; i < 10; i++) {
    await client.put(ok, {
      id: `ok-${i}`,
      schedule: { ...schedule, except: [{ named: "holidays" }] },
      overlap: "queue-one",
      tags: ["brass"],
      alertIf: { noSuccessFor: "1h" },
      payload: {},
    });
    await client.put(bad, {
      id: `bad-${i}`,
      schedule,
      rerun: { delay: "100ms" },
      alerts: [{ on: ["failed"], url: "http://127.0.0.1:9/" }],
      payload: {},
    });
  }
  await client.put(many, { id: "many", schedule, payload: {} });
  await client.enqueue(ok, {});
  const now = Date.now();
  await operatorOf(client).backfills.start({
    id: "ok-1",
    from: now - 3_600_000,
    to: now - 3_500_000,
    every: "1s",
  });
  await eventually(() => expect(runs).toBeGreaterThan(60));

  for (const queue of (await operatorOf(client).names.list({ of: "queue" })).names)
    await operatorOf(client).tasks.deleteMany({ queue });
  await worker.stop();
  await operatorOf(client).calendars.delete({ name: "holidays" });
  await operatorOf(client).tokens.revoke({ name: "ci" });
  const ours = (key: string) => key.includes(":~") || key.startsWith("{carillon}");
  // Runs in progress, and webhooks of failures until the end, are deleted while a node runs.
  await eventually(
    async () => {
      for (const queue of (await operatorOf(client).names.list({ of: "queue" })).names)
        await operatorOf(client).tasks.deleteMany({ queue });
      const left = (await lastingKeys(admin)).filter(ours);
      expect(left.filter((key) => !TOLD.includes(key))).toEqual([
        "{carillon}:alerts",
        "{carillon}:changes",
        "{carillon}:history",
        "{carillon}:nodes",
      ]);
    },
    { intervalMs: 100 },
  );
  await node.stop();
  // The logs of changes and alerts outlive their tasks, and so does the mark by which nodes notice lost data.
  const lasting = ["{carillon}:alerts", "{carillon}:changes", "{carillon}:history"];
  expect((await lastingKeys(admin)).filter((key) => !TOLD.includes(key))).toEqual(lasting);
  for (const queue of ["bells", "chimes", "carillon-alerts"])
    await operatorOf(client).queues.delete({ queue });
  expect(await lastingKeys(admin)).toEqual(lasting);
  await client.close();
});
