import { defineTask } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { expect, it, vi } from "vitest";
import { gate } from "../../../../test/helpers.js";
import { Bench, nothing, QUEUE, typed } from "./bench.js";

// The worker's pauses between its tries, about a minute in all.
vi.mock("node:timers/promises", async (original) => ({
  ...(await original<typeof import("node:timers/promises")>()),
  setTimeout: () => new Promise((resolve) => setImmediate(resolve)),
}));

const bench = Bench.use("nostart");

it("a run whose start Redis refuses for a minute is not failed: it runs when Redis accepts it", async () => {
  let refused = 0;
  const failpoint = (point: string) => {
    if (point !== "before start-run" || refused === 20) return;
    refused += 1;
    throw new Error("NOPERM this user has no permissions to run the 'evalsha' command");
  };
  const store = new Store(
    withSeams({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint }),
  );
  const noop = defineTask("noop", { queue: QUEUE, payload: nothing, handler: () => {} });
  // A start that has conditions to check is not combined with the take.
  await bench.put("t", "noop", { schedule: { every: "100ms" }, minGap: "1ms" });
  const run = await bench.due("t");
  const worker = await bench.work([noop], { connection: undefined, store });
  await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
  expect(await bench.record(run)).toMatchObject({ attempts: 1 });
  const jobs = bench.queue();
  // The job returns to the queue once, after that minute.
  const counts = { attemptsMade: 1, attemptsStarted: 2 };
  await eventually(async () => expect(await jobs.getJob(run)).toMatchObject(counts));
  expect(refused).toBe(20);
  await worker.stop();
  await store.close();
});

it("a stop waits for a handler however often it checks for one", async () => {
  const [begun, finish] = [gate(), gate()];
  const type = typed(async () => {
    begun.resolve();
    await finish.promise;
  });
  const worker = await bench.work([type]);
  const run = await bench.run("t", "type");
  await begun.promise;
  let stopped = false;
  const stop = worker.stop().then(() => {
    stopped = true;
  });
  for (let n = 0; n < 100; n++) await bench.admin.ping();
  expect(stopped).toBe(false);
  finish.resolve();
  await stop;
  expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" });
});
