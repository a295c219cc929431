import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { internalsOf, Store } from "@carillon/sdk/internal";
import { type RedisServer, startRedis } from "@carillon/testing";
import type { Registry } from "prom-client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SILENT } from "../../../test/helpers.js";
import { schedulerMetrics } from "../src/metrics.js";

let redis: RedisServer;
let client: Client;
let scheduler: Scheduler;
let store: Store;
let registry: Registry;
beforeEach(async () => {
  redis = await startRedis({ appendonly: true });
  client = new Client({ connection: redis.url });
  store = new Store({ connection: redis.url });
  scheduler = new Scheduler({ store, logger: SILENT });
  registry = schedulerMetrics(scheduler, store);
  await scheduler.start();
});
afterEach(async () => {
  await scheduler.stop();
  await store.close();
  await client.close();
  await redis.stop();
});

/** The lines about queues, without `carillon_queue_`. */
async function queueLines(): Promise<string[]> {
  const text = await registry.metrics();
  return text.split("\n").flatMap((line) => /^carillon_queue_(.*)/.exec(line)?.[1] ?? []);
}

it("metrics say of each queue whether it is paused, what waits, for how long, and who works it", async () => {
  expect(await queueLines()).toEqual([]);
  await client.put({ id: "a", queue: "q", type: "noop", schedule: { every: "1d" } });
  await client.put({ id: "b", queue: "r", type: "noop", schedule: { every: "1d" } });
  await client.queues.pause("q");
  await client.trigger("a");
  const read = vi.spyOn(store.queues, "workers");
  const lines = await queueLines();
  // Once for all five.
  expect(read).toHaveBeenCalledTimes(1);
  expect(lines.map((line) => line.replace(/(q"}) 0\.\d+$/, "$1 age"))).toEqual([
    ...['paused{queue="q"} 1', 'paused{queue="r"} 0'],
    ...['waiting_jobs{queue="q"} 1', 'waiting_jobs{queue="r"} 0'],
    ...['active_jobs{queue="q"} 0', 'active_jobs{queue="r"} 0'],
    ...['oldest_waiting_seconds{queue="q"} age', 'oldest_waiting_seconds{queue="r"} 0'],
    ...['workers{queue="q"} 0', 'workers{queue="r"} 0'],
  ]);
  await client.queues.resume("q");
  expect(await queueLines()).toContain('paused{queue="q"} 0');
});

it("metrics leave out what Redis does not say: workers, a queue that holds something else, all while it hangs", async () => {
  await client.put({ id: "a", queue: "q", type: "noop", schedule: { every: "1d" } });
  await client.put({ id: "b", queue: "r", type: "noop", schedule: { every: "1d" } });
  const { link, keys } = internalsOf(store);
  await link.client.set(`${keys.queue("r").bull}wait`, "no list");
  store.queues.workers = async () => undefined;
  expect((await queueLines()).filter((line) => !line.includes('{queue="q"}'))).toEqual([]);
  expect((await queueLines()).map((line) => line.split("{")[0])).toEqual([
    ...["paused", "waiting_jobs", "active_jobs", "oldest_waiting_seconds"],
  ]);
  redis.pause();
  expect(await queueLines()).toEqual([]);
  redis.continue();
});
