import { defineTask } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { eventually } from "@carillon/testing";
import { expect, it, vi } from "vitest";
import { Bench, nothing, QUEUE } from "./bench.js";

// The worker's pauses between its tries, about a minute in all.
vi.mock("node:timers/promises", async (original) => ({
  ...(await original<typeof import("node:timers/promises")>()),
  setTimeout: () => new Promise((resolve) => setImmediate(resolve)),
}));

const bench = Bench.use("nostart");

it("a run whose start Redis does not take for a minute is not failed: it runs when Redis takes it", async () => {
  let refused = 0;
  const failpoint = (point: string) => {
    if (point !== "before start-run" || refused === 20) return;
    refused += 1;
    throw new Error("NOPERM this user has no permissions to run the 'evalsha' command");
  };
  const store = new Store({ connection: bench.redis.url, namespace: bench.namespace }, { failpoint });
  const noop = defineTask("noop", { queue: QUEUE, payload: nothing, handler: () => {} });
  const run = await bench.run("t", "noop");
  const worker = await bench.work([noop], { connection: undefined, store });
  await eventually(async () => expect(await bench.record(run)).toMatchObject({ outcome: "succeeded" }));
  expect(await bench.record(run)).toMatchObject({ attempts: 1 });
  const jobs = bench.queue();
  await eventually(async () => expect(await jobs.getJob(run)).toMatchObject({ attemptsMade: 1 }));
  expect(refused).toBe(20);
  await worker.stop();
  await store.close();
});
