// Cost of run records in a worker: a Carillon worker drains a queue, compared with BullMQ's own worker on the same jobs. Handlers
// do nothing and no node is running. Rounds alternate on one Redis.
import { bullPrefix, Client, defineTask, Worker } from "@carillon/sdk";
import { Worker as BullWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { Node, pause } from "../measure/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({
  ...{ runs: [20_000, 400], rounds: [5, 1], warmup: [1, 0], concurrency: 50 },
});
const RUNS = options.runs;
const namespace = "worker";
const QUEUE = "reports";
const server = await startServer();
const prefix = bullPrefix(namespace, QUEUE);

/** Fills the queue as production does: tasks come due, and a node enqueues them. */
async function fill(client, queue) {
  const node = new Node("node", { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace });
  await node.running;
  const due = new Date((await server.time()) + RUNS / 8 + 1_000).toISOString();
  await client.putMany(
    Array.from({ length: RUNS }, (_, i) => ({
      id: `report-${i}`,
      owner: `team-${i % 20}`,
      type: "report",
      queue: QUEUE,
      schedule: { every: "1h", origin: due, start: due },
      payload: { customer: i, format: "pdf" },
    })),
  );
  while ((await queue.getWaitingCount()) < RUNS) await pause(100);
  await node.stop();
}

const kinds = {
  Carillon: (/** @type {import("@carillon/sdk").Handler<z.ZodAny>} */ handler) => {
    const types = [defineTask("report", { queue: QUEUE, payload: z.any(), handler })];
    const worker = new Worker({
      ...{ connection: server.url, namespace, types },
      concurrency: options.concurrency,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    return { start: () => worker.start(), stop: () => worker.stop() };
  },
  BullMQ: (handler) => {
    const connection = new Redis(server.url, { maxRetriesPerRequest: null });
    const settings = { connection, prefix, concurrency: options.concurrency, autorun: false };
    const worker = new BullWorker(QUEUE, handler, settings);
    return {
      start: async () => void worker.run(),
      async stop() {
        await worker.close();
        connection.disconnect();
      },
    };
  },
};

async function drain(kind) {
  const client = new Client({ connection: server.url, namespace });
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const queue = new Queue(QUEUE, { connection, prefix });
  await fill(client, queue);
  const seen = new Set();
  let calls = 0;
  let over = () => {};
  const all = new Promise((resolve) => {
    over = () => resolve(undefined);
  });
  const worker = kinds[kind](async (_, about) => {
    calls += 1;
    if (typeof about?.idempotencyKey === "string") seen.add(about.idempotencyKey);
    if (calls === RUNS) over();
  });
  const before = { cpu: await server.cpu(), scripts: (await server.calls()).get("evalsha") ?? 0 };
  const own = process.cpuUsage();
  const begin = performance.now();
  await worker.start();
  await all;
  // The last ends too.
  while ((await queue.getCompletedCount()) < RUNS) await pause(2);
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(own);
  const cpu = (await server.cpu()) - before.cpu;
  const scripts = ((await server.calls()).get("evalsha") ?? 0) - before.scripts;
  const { succeeded } = await client.queues.outcomes(QUEUE);
  await worker.stop();
  await queue.close();
  connection.disconnect();
  await client.close();
  await server.clear();
  return {
    rate: (1000 * RUNS) / ms,
    redis: (1e6 * cpu) / RUNS,
    process: (user + system) / RUNS,
    scripts: scripts / RUNS,
    recorded: calls === RUNS && seen.size === RUNS ? succeeded / RUNS : 0,
  };
}

const rounds = [];
for (let round = -options.warmup; round < options.rounds; round++) {
  const pair = { Carillon: await drain("Carillon"), BullMQ: await drain("BullMQ") };
  if (round >= 0) rounds.push(pair);
}
const ratio = (pick) => median(rounds.map(({ Carillon, BullMQ }) => pick(Carillon) / pick(BullMQ)));
print(
  {
    bench: "worker",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target(
        "share of the runs that were worked once and are on record as succeeded",
        Math.min(...rounds.map(({ Carillon }) => Carillon.recorded)),
        ">=",
        1,
      ),
    ],
    seen: {
      "runs a second, as a share of BullMQ's worker's": ratio(({ rate }) => rate),
      "Redis CPU of a run, times theirs": ratio(({ redis }) => redis),
      "the worker's own CPU of a run, times theirs": ratio((one) => one.process),
    },
    table: Object.keys(kinds).map((kind) => {
      const of = (pick) => Math.round(10 * median(rounds.map((pair) => pick(pair[kind])))) / 10;
      return {
        worker: kind,
        "runs a second": of(({ rate }) => rate),
        "Redis CPU us": of(({ redis }) => redis),
        "own CPU us": of((one) => one.process),
        "scripts of a run": of(({ scripts }) => scripts),
      };
    }),
  },
  options.json,
);
await server.stop();
process.exit(0);
