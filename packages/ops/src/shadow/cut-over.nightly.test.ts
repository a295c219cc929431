import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { Worker as BullWorker, Queue } from "bullmq";
import { expect, it } from "vitest";
import { z } from "zod";
import { SILENT, sharedRedis } from "../../../../test/helpers.js";
import { cutOver, goBack } from "../index.js";

const QUEUE = "bells";
const IDS = Array.from({ length: 50 }, (_, n) => `t${n}`);
const INTERVAL = 2_000;

const redis = sharedRedis();

it("50 live schedulers under load are taken over one by one, and given back: 0 doubled, 0 missed", async () => {
  const connection = { host: "127.0.0.1", port: redis.port };
  const theirs = new Queue(QUEUE, { connection });
  /** By scheduler, each fired time and the times that BullMQ itself leaves out, because its worker took the job late. */
  const fired = new Map<string, number[]>(IDS.map((id) => [id, []]));
  const left = new Map<string, Set<number>>(IDS.map((id) => [id, new Set()]));
  const old = new BullWorker(
    QUEUE,
    async ({ id = "", name }) => {
      if (name === "noise") return;
      const [, scheduler = "", time] = id.split(":");
      const nominal = Number(time);
      fired.get(scheduler)?.push(nominal);
      for (let at = nominal + INTERVAL; at <= Date.now(); at += INTERVAL) left.get(scheduler)?.add(at);
    },
    { connection, concurrency: 20 },
  );
  const ring = defineTask("ring", { queue: QUEUE, payload: z.looseObject({}), handler: () => {} });
  const client = new Client({ connection: redis.url });
  const node = new Scheduler({ connection: redis.url, unsafeRedis: "warn", logger: SILENT });
  const worker = new Worker({ connection: redis.url, types: [ring], concurrency: 20, logger: SILENT });
  await Promise.all([node.start(), worker.start()]);
  let noisy = true;
  const noise = (async () => {
    while (noisy) await theirs.addBulk(Array.from({ length: 20 }, () => ({ name: "noise", data: {} })));
  })();
  try {
    for (const id of IDS) {
      await theirs.upsertJobScheduler(id, { pattern: "*/2 * * * * *" }, { name: "ring" });
      await client.put({
        id,
        type: "ring",
        queue: QUEUE,
        mode: "shadow",
        catchUp: "all",
        overlap: "allow",
        schedule: { cron: "*/2 * * * * *" },
        retention: { successes: 10_000 },
      });
    }
    const place = (id: string) => ({
      redis: storeOf(client).connect("patient"),
      prefix: "bull",
      queue: QUEUE,
      id,
    });
    const places = new Map(IDS.map((id) => [id, place(id)]));
    for (const [id, old] of places) await cutOver(client, id, old);
    for (const [id, old] of places) await goBack(client, id, old);
    const end = Date.now();
    await eventually(() => expect(IDS.every((id) => (fired.get(id)?.at(-1) ?? 0) > end)).toBe(true));

    const faults: string[] = [];
    let ours = 0;
    for (const id of IDS) {
      const runs = (await client.runs.list(id, { limit: 1_000 })).map(({ nominal }) => nominal);
      ours += runs.length;
      const times = [...(fired.get(id) ?? []), ...runs].sort((a, b) => a - b);
      for (const [i, time] of times.entries()) if (time === times[i + 1]) faults.push(`${id}: ${time} twice`);
      const known = new Set([...times, ...(left.get(id) ?? [])]);
      for (let at = times[0] ?? 0; at <= end; at += INTERVAL)
        if (!known.has(at)) faults.push(`${id}: ${at} missed`);
    }
    expect(faults).toEqual([]);
    expect(ours).toBeGreaterThan(IDS.length);
  } finally {
    noisy = false;
    await noise;
    await Promise.all([old.close(), theirs.close(), worker.stop(), node.stop()]);
    await client.close();
  }
});
