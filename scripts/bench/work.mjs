// Instructions of Redis for an occurrence, from its claim to the end of its run: Carillon with one node and one worker, and BullMQ's Job
// Schedulers with BullMQ's worker. Handlers do nothing. Instructions do not depend on what else the machine does.
import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { Worker as BullWorker, Queue } from "bullmq";
import { z } from "zod";
import { pause } from "../lib/nodes.mjs";
import { startCountedServer } from "./lib/counted-server.mjs";
import { readOptions } from "./lib/options.mjs";
import { print, target } from "./lib/report.mjs";

const options = readOptions({ rounds: [3, 1] }, ["load", "side"]);
const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error: console.error, fatal: console.error };
const CONCURRENCY = 200;

/** Tasks, the ms between two of their occurrences, and the ms between two tasks. A round is one occurrence of each. */
const LOADS = {
  "one by one": { tasks: 10, every: 10_000, apart: 1_000, most: 1.2 },
  "20 at one instant": { tasks: 20, every: 10_000, apart: 0, most: 1 },
  "100 at one instant": { tasks: 100, every: 30_000, apart: 0, most: 0.9 },
};

const SIDES = { carillon, schedulers };

async function carillon(connection, tasks, onDone) {
  const type = defineTask("noop", { queue: "q", payload: z.object({}), handler: async () => {} });
  const client = new Client({ connection });
  const node = new Scheduler({ connection, logger: quiet });
  const worker = new Worker({ connection, types: [type], concurrency: CONCURRENCY, logger: quiet });
  worker.on("settled", onDone);
  await Promise.all([worker.start(), node.start()]);
  await client.putMany(
    tasks.map(({ id, every, at }) => ({
      ...{ id, type: "noop", queue: "q", payload: {} },
      schedule: { every, origin: new Date(at).toISOString() },
    })),
  );
  return async () => {
    await node.stop();
    await worker.stop();
    await client.close();
  };
}

async function schedulers(url, tasks, onDone) {
  const connection = { url, maxRetriesPerRequest: null };
  const queue = new Queue("q", { connection });
  const kept = { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } };
  const worker = new BullWorker("q", async () => {}, { connection, concurrency: CONCURRENCY, ...kept });
  worker.on("completed", onDone);
  await worker.waitUntilReady();
  for (const { id, every, at } of tasks) {
    await queue.upsertJobScheduler(id, { every, offset: at % every }, { name: "noop", data: {} });
  }
  return async () => {
    await worker.close();
    await queue.close();
  };
}

async function measure(side, { tasks, every, apart }) {
  const server = await startCountedServer();
  let done = 0;
  const upTo = async (n) => {
    while (done < n) await pause(10);
  };
  const named = Array.from({ length: tasks }, (_, i) => ({ id: `t${i}`, every, at: i * apart }));
  const stop = await SIDES[side](server.url, named, () => {
    done += 1;
  });
  // A Job Scheduler's first job may come at once.
  await upTo(2 * tasks);
  const before = done;
  const seen = await server.count(() => upTo(before + options.rounds * tasks));
  const n = done - before;
  const version = await server.version();
  await stop();
  await server.stop();
  const per = (value, digits = 2) => Number((value / n).toFixed(digits));
  const million = (value) => per(value / 1e6, 3);
  return {
    version,
    row: {
      ...{ million: million(seen.all), scripts: million(seen.scripts), commands: million(seen.commands) },
      ...{ conversion: million(seen.conversion), garbage: million(seen.garbage) },
      ...{ "script calls": per(seen.scriptCalls), "command calls": per(seen.commandCalls, 1) },
    },
    byCommand: Object.entries(seen.byCommand)
      .sort(([, a], [, b]) => b - a)
      .map(([name, calls]) => `${name} ${per(calls)}`)
      .join(", "),
  };
}

const table = [];
const targets = [];
const seen = {};
let redis;
for (const [load, of] of Object.entries(LOADS)) {
  if (options.load !== undefined && options.load !== load) continue;
  const sides = {};
  for (const side of Object.keys(SIDES)) {
    if (options.side !== undefined && options.side !== side) continue;
    const { version, row, byCommand } = await measure(side, of);
    redis = version;
    sides[side] = row;
    table.push({ load, side, ...row });
    seen[`commands of ${side}, ${load}`] = byCommand;
  }
  if (sides.carillon && sides.schedulers)
    targets.push(
      target(
        `instructions, ${load}, of theirs`,
        sides.carillon.million / sides.schedulers.million,
        "<=",
        of.most,
      ),
    );
}
print({ bench: "work", smoke: options.smoke, redis, targets, seen, table }, options.json);
process.exit(0);
