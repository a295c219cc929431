// A worker in its own process: the SDK's, and for one queue a plain BullMQ worker that knows nothing of Carillon.
// Handlers report idempotency key, fence and run, and items that are done; their behaviour depends on payload, key and run alone.
import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { bullPrefix, defineTask, Worker } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { withSeams } from "@carillon/store/internal";
import { Worker as BullWorker } from "bullmq";
import { z } from "zod";
import { obeyingFailpoint, tell } from "./failpoint.mjs";

const {
  REDIS_URL: connection = "",
  CARILLON_NAMESPACE: namespace,
  CHAOS_QUEUES = "",
  CHAOS_PLAIN_QUEUE,
  CHAOS_LOCK_MS,
  CHAOS_RETENTION,
  CHAOS_CONCURRENCY = "40",
} = process.env;
const lockDuration = Number(CHAOS_LOCK_MS);

/** A number from 0 to 1, the same for the same text. */
const share = (text) => createHash("sha1").update(text).digest().readUInt32BE(0) / 2 ** 32;

const job = defineTask("job", {
  queue: "work",
  payload: z.object({ least: z.number(), most: z.number(), fails: z.number() }),
  async handler({ least, most, fails }, { idempotencyKey, fence, attempt, occurrence, signal }) {
    const { queue, task, run, nominal } = occurrence;
    tell({ what: "started", key: idempotencyKey, fence, attempt, queue, task, run, nominal });
    const ms = least + share(idempotencyKey) * (most - least);
    await pause(ms, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
    if (share(`${run} ${attempt}`) < fails) throw new Error("it failed, as it was to");
  },
});

const fan = defineTask("fan", {
  queue: "fan",
  payload: z.object({ items: z.number(), ms: z.number() }),
  generate: ({ items, ms }, { occurrence: { owner } }) =>
    Array.from({ length: items }, (_, n) => ({ owner, n, ms })),
  async process({ owner, n, ms }, { occurrence: { queue, run } }) {
    await pause(ms);
    tell({ what: "item", queue, run, owner, n });
  },
});

const retention = CHAOS_RETENTION && JSON.parse(CHAOS_RETENTION);
const store = new Store(withSeams({ connection, namespace, retention }, { failpoint: obeyingFailpoint() }));
const queues = CHAOS_QUEUES.split(",").filter(Boolean);
const worker = new Worker({
  store,
  types: [job, fan],
  queues,
  concurrency: Number(CHAOS_CONCURRENCY),
  lockDuration,
  stalledInterval: Math.max(500, Math.round(lockDuration / 2)),
  captureOutput: false,
  logger: {
    debug() {},
    info() {},
    warn() {},
    // The load's handlers fail on purpose.
    error: (details, message) => message === "run failed" || tell({ what: "error", message, ...details }),
  },
});
worker.on("fenced", ({ run }) => tell({ what: "fenced", run }));
worker.on("error", () => {});
await worker.start();

let plain;
if (CHAOS_PLAIN_QUEUE) {
  plain = new BullWorker(CHAOS_PLAIN_QUEUE, () => pause(50), {
    connection: store.connect("patient"),
    prefix: bullPrefix(store.namespace, CHAOS_PLAIN_QUEUE),
    lockDuration,
    stalledInterval: Math.max(500, Math.round(lockDuration / 2)),
    maxStalledCount: 1_000,
    concurrency: 20,
  });
  plain.on("error", () => {});
}
tell({ what: "ready" });

process.once("SIGTERM", async () => {
  await Promise.all([worker.stop({ within: 1_000 }), plain?.close(true)]);
  process.exit(0);
});
