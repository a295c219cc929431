// A plain BullMQ worker in its own process: sends, for each job, when it was due, when its handler began, when it was
// produced, and its task. Uses the machine's clock, as Redis does here.
import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { home } from "./crew.mjs";
import { HANDLERS } from "./handlers.mjs";

const { url, queues, where, concurrency, handler } = JSON.parse(process.argv[2] ?? "");
const connection = new Redis(url, { maxRetriesPerRequest: null });
const { add, ready } = home();

/**
 * Our jobs contain these values. A job of BullMQ's schedulers is called `repeat:<scheduler>:<time>`, and produced when
 * it is taken.
 * @param {import("bullmq").Job} job
 */
function told({ id, data, processedOn }) {
  if (data.occurrence) return data.occurrence;
  const [, task, due] = String(id).split(":");
  return { task, due: Number(due), enqueued: processedOn };
}

const workers = queues.map(
  (queue) =>
    new Worker(
      queue,
      async (job) => {
        const { due, enqueued, task } = told(job);
        add([due, Date.now(), enqueued, task]);
        await HANDLERS[handler]();
      },
      { connection, prefix: where, concurrency, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
    ),
);
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
ready(() => Promise.all(workers.map((worker) => worker.close())));
