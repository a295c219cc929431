// A Carillon worker in its own process; sends the same rows as plain-worker.mjs. Retention of jobs and records is so
// short that their removal is part of the measurement.
import { defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";
import { home } from "./crew.mjs";
import { HANDLERS } from "./handlers.mjs";

const { url, queues, where, concurrency, handler } = JSON.parse(process.argv[2] ?? "");
const { add, ready } = home();
const types = queues.map((queue) =>
  defineTask(queue, {
    queue,
    payload: z.any(),
    async handler(_, { occurrence: { due, enqueued, task } }) {
      add([due, Date.now(), enqueued, task]);
      await HANDLERS[handler]();
    },
  }),
);
const worker = new Worker({
  connection: url,
  namespace: where,
  types,
  concurrency,
  retention: { successes: 3, completedJobs: { for: 2_000 } },
  logger: { debug() {}, info() {}, warn: console.error, error: console.error },
});
await worker.start();
ready(() => worker.stop());
