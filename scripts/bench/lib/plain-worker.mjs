// A plain BullMQ worker as a process of its own: sends home, for each job, when its handler began. Its clock is the machine's, as
// is that of Redis here.
import { Worker } from "bullmq";
import { Redis } from "ioredis";

const [url, queue, prefix, concurrency] = process.argv.slice(2);
const connection = new Redis(url, { maxRetriesPerRequest: null });
let started = [];
const flush = () => {
  if (started.length > 0) process.send?.(started);
  started = [];
};
setInterval(flush, 200);
const worker = new Worker(
  queue,
  async ({ id, data }) => {
    // The jobs of BullMQ's schedulers are called `repeat:<scheduler>:<time>`.
    const { due, enqueued } = data.occurrence ?? { due: Number(id.split(":").at(-1)) };
    started.push([due, Date.now(), enqueued ?? 0]);
  },
  {
    connection,
    prefix,
    concurrency: Number(concurrency),
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  },
);
await worker.waitUntilReady();
process.send?.("ready");
process.on("SIGTERM", async () => {
  flush();
  await worker.close();
  process.exit(0);
});
