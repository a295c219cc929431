// One worker drains a queue of runs whose handlers do nothing: ours, or BullMQ's own. No node is running meanwhile.
import { bullPrefix, Client, defineTask, Worker } from "@carillon/sdk";
import { storeOf } from "@carillon/sdk/internal";
import { Worker as BullWorker, Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { Node, pause } from "../../lib/nodes.mjs";

const namespace = "worker";
const QUEUE = "reports";
const prefix = bullPrefix(namespace, QUEUE);
/** Expected puts per second; if they are slower, the tasks are put again, further ahead. */
const PUTS = 8_000;
const SPARE = 1_000;

/** Fills the queue as in production: tasks become due, and a node enqueues them. */
async function fill(server, client, queue, runs) {
  const node = new Node("node", { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace });
  await node.running;
  for (let ahead = (1000 * runs) / PUTS + SPARE; ; ahead *= 2) {
    const due = (await server.time()) + ahead;
    const origin = new Date(due).toISOString();
    await client.putMany(
      Array.from({ length: runs }, (_, i) => ({
        id: `report-${i}`,
        owner: `team-${i % 20}`,
        type: "report",
        queue: QUEUE,
        schedule: { every: "1h", origin, start: origin },
        payload: { customer: i, format: "pdf" },
      })),
    );
    // A task that was put after that time is due in an hour.
    if ((await server.time()) < due) break;
    await server.clear();
  }
  while ((await queue.getWaitingCount()) < runs) await pause(100);
  await node.stop();
}

const kinds = {
  Carillon: (server, concurrency, /** @type {import("@carillon/sdk").Handler<z.ZodAny>} */ handler) => {
    const types = [defineTask("report", { queue: QUEUE, payload: z.any(), handler })];
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const worker = new Worker({ connection: server.url, namespace, types, concurrency, logger });
    return { start: () => worker.start(), stop: () => worker.stop() };
  },
  BullMQ: (server, concurrency, handler) => {
    const connection = new Redis(server.url, { maxRetriesPerRequest: null });
    const worker = new BullWorker(QUEUE, handler, { connection, prefix, concurrency, autorun: false });
    return {
      start: async () => void worker.run(),
      async stop() {
        await worker.close();
        connection.disconnect();
      },
    };
  },
};

/**
 * Rounds that alternate on one Redis, and their comparison.
 * @param {any} server
 * @param {{ runs: number, rounds: number, warmup: number, concurrency: number }} options
 */
export async function drainRounds(server, { runs, rounds, warmup, concurrency }) {
  const pairs = [];
  for (let round = -warmup; round < rounds; round++) {
    const pair = {};
    for (const kind of Object.keys(kinds)) pair[kind] = await drain(server, kind, runs, concurrency);
    if (round >= 0) pairs.push(pair);
  }
  return pairs;
}

/** @returns runs per second; and CPU µs, commands and scripts per run, from its start to the end of its job */
async function drain(server, kind, runs, concurrency) {
  const client = new Client({ connection: server.url, namespace });
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const queue = new Queue(QUEUE, { connection, prefix });
  await fill(server, client, queue, runs);
  const seen = new Set();
  let calls = 0;
  let over = () => {};
  const all = new Promise((resolve) => {
    over = () => resolve(undefined);
  });
  const worker = kinds[kind](server, concurrency, async (_, about) => {
    calls += 1;
    if (typeof about?.idempotencyKey === "string") seen.add(about.idempotencyKey);
    if (calls === runs) over();
  });
  const scriptCalls = async () => {
    const calls = await server.calls();
    return (calls.get("evalsha") ?? 0) + (calls.get("fcall") ?? 0);
  };
  const before = { ...(await server.work()), scripts: await scriptCalls() };
  const own = process.cpuUsage();
  const begin = performance.now();
  await worker.start();
  await all;
  // Waits for the last ends too.
  while ((await queue.getCompletedCount()) < runs) await pause(2);
  const ms = performance.now() - begin;
  const { user, system } = process.cpuUsage(own);
  const { commands, cpu } = await server.work();
  const scripts = (await scriptCalls()) - before.scripts;
  const { succeeded } = await storeOf(client).runs.outcomes(QUEUE);
  await worker.stop();
  await queue.close();
  connection.disconnect();
  await client.close();
  await server.clear();
  return {
    rate: (1000 * runs) / ms,
    redis: (1e6 * (cpu - before.cpu)) / runs,
    process: (user + system) / runs,
    commands: (commands - before.commands) / runs,
    scripts: scripts / runs,
    recorded: calls === runs && seen.size === runs ? succeeded / runs : 0,
  };
}
