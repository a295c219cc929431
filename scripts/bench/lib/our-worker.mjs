// A Carillon worker in its own process; sends the same rows as plain-worker.mjs. Retention of jobs and records is so
// short that their removal is part of the measurement.
import { defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";
import { home } from "./crew.mjs";

const [url, queue, namespace, concurrency] = process.argv.slice(2);
const { add, ready } = home();
const pulse = defineTask("pulse", {
  queue,
  payload: z.any(),
  async handler(_, { occurrence: { due, enqueued, task } }) {
    add([due, Date.now(), enqueued, task]);
  },
});
const worker = new Worker({
  ...{ connection: url, namespace, types: [pulse], concurrency: Number(concurrency) },
  retention: { successes: 3, completedJobs: 2_000 },
  logger: { debug() {}, info() {}, warn: console.error, error: console.error },
});
await worker.start();
ready(() => worker.stop());
