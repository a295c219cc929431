// Bytes of Redis memory of tasks, kept runs and jobs, made by a real node and a real worker in virtual time, and connections of each process:
// the figures that docs/capacity.md and its tables are made of (lib/sizing.mjs). Nothing is timed.
import { Scheduler } from "@carillon/scheduler";
import { bullPrefix, Client, defineTask, Worker } from "@carillon/sdk";
import { internalsOf } from "@carillon/store/internal";
import { eventually, startRedis, testKit } from "@carillon/testing";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { pause } from "../lib/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { print, target } from "./lib/report.mjs";
import { field } from "./lib/server.mjs";
import { CONNECTIONS, EVENTS, JOB, memoryOf, SIZES, slotOf, tables } from "./lib/sizing.mjs";

const options = readOptions({ tasks: [20_000, 500], ran: [100, 20], runs: [30, 20] });
const QUEUE = "mail";
const START = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;

/** 12-byte ids, an owner each, once a day at a minute of its own. */
const task = (i, more = {}) => ({
  id: `task-${String(i).padStart(7, "0")}`,
  owner: `u${i}`,
  type: "mail",
  queue: QUEUE,
  schedule: { cron: `${i % 60} ${Math.floor(i / 60) % 24} * * *`, timezone: "Europe/Paris" },
  payload: {},
  ...more,
});
const many = (count, more) => Array.from({ length: count }, (_, i) => task(i, more));

/** Fields that production tasks have besides a schedule. */
const LARGER = {
  payload: { customer: "cus_9s6XKzkNRiz8i3", format: "pdf", to: ["accounts@example.com"], locale: "en-GB" },
  timeLimit: "5m",
  retry: { attempts: 3, delay: "1m" },
  pauseAfterFailures: 5,
};

const server = await startRedis({ appendonly: true, config: { "auto-aof-rewrite-percentage": 0 } });
const admin = new Redis(server.url);
const used = async () => Number(field(await admin.info("memory"), "used_memory"));
const measured = {};

/** Bytes that the call adds for each of these. */
async function added(count, act) {
  const before = await used();
  await act();
  return ((await used()) - before) / count;
}

const client = new Client({ connection: server.url, namespace: "tasks" });
// Functions of Redis are loaded with their first call.
await client.put(task(0));
const fill = (more) => added(options.tasks, () => client.putMany(many(options.tasks, more)));
measured.task = await fill({});
measured["first update of a task: the definition that it replaces"] = await fill({ timeLimit: "1h" });
for (const [what, more] of [
  ["one with a payload of 95 bytes, a time limit and retries", LARGER],
  ["one with a payload of 200 bytes", { payload: { text: "x".repeat(200 - '{"text":""}'.length) } }],
]) {
  await admin.flushall("SYNC");
  const fresh = new Client({ connection: server.url, namespace: "larger" });
  await fresh.put(task(0));
  measured[what] = await added(options.tasks, () => fresh.putMany(many(options.tasks, more)));
  await fresh.close();
}
await client.close();
await admin.flushall("SYNC");

let fails = false;
const ofQueue = (type, queue) =>
  defineTask(type, {
    queue,
    payload: z.looseObject({}),
    handler: () => {
      if (fails) throw new Error("connect ECONNREFUSED 10.0.0.5:5432");
    },
  });
const mail = ofQueue("mail", QUEUE);
const kit = await testKit({ redis: server, types: [mail], start: START });
await kit.client.put({ ...task(0), id: "first", schedule: { at: START + 1 } });
await kit.advance(1);
await kit.client.delete("u0/first");
const before = await used();
await kit.client.putMany(many(options.ran));
for (let day = 0; day < options.runs; day++) await kit.advance(DAY);
const keys = internalsOf(kit.store).keys.queue(QUEUE);
const KINDS = {
  run: keys.run(""),
  history: keys.history(""),
  journal: keys.journal,
  stats: keys.stats(""),
};

/** Bytes of all keys by kind, as Redis counts them. */
async function byKind() {
  const sums = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  let cursor = "0";
  do {
    const [next, found] = await admin.scan(cursor, "COUNT", 1_000);
    cursor = next;
    const sizes = await Promise.all(found.map((key) => admin.memory("USAGE", key, "SAMPLES", 0)));
    for (const [i, key] of found.entries()) {
      const kind = Object.keys(KINDS).find((one) => key.startsWith(KINDS[one]));
      if (kind !== undefined) sums[kind] += Number(sizes[i]);
    }
  } while (cursor !== "0");
  return sums;
}

const RUNS = options.ran * options.runs;
const scheduled = await byKind();
const whole = (await used()) - before;
const journalled = await admin.zcard(keys.journal);
if (Math.abs(journalled - RUNS) > 1)
  throw new Error(`Not what was to be measured: ${journalled} runs of ${RUNS}`);
measured["record of a kept run"] = scheduled.run / RUNS;
measured["its place in the history of its task"] = scheduled.history / RUNS;
measured["its place in the journal of its queue"] = scheduled.journal / RUNS;
measured["statistics of a task that has run"] = scheduled.stats / options.ran;
measured[EVENTS] = Number(await admin.memory("USAGE", `${keys.bull}events`, "SAMPLES", 0));
const queue = new Queue(QUEUE, { connection: { url: server.url }, prefix: bullPrefix(kit.namespace, QUEUE) });
measured[JOB] = -(await added(RUNS, () => queue.clean(0, 0, "completed")));
await queue.close();

/** Bytes of the records of one more run of each task. */
async function oneMore() {
  const { run } = await byKind();
  for (const { owner, id } of many(options.ran)) await kit.client.trigger({ owner, id });
  await kit.advance(0);
  return ((await byKind()).run - run) / options.ran;
}
measured["record of a triggered run"] = await oneMore();
fails = true;
measured["record of one that failed, with its stack"] = await oneMore();
await kit.close();

/** Connections that a process has, once it works. */
async function connections(start) {
  const count = async () =>
    String(await admin.client("LIST"))
      .trim()
      .split("\n").length;
  // Those of the process before it are closed in the background.
  await eventually(async () => (await count()) === 1);
  const stop = await start();
  for (let before = 0, now = await count(); ; before = now, now = await count()) {
    if (now !== before) await pause(500);
    else {
      await stop();
      return now - 1;
    }
  }
}
const connection = server.url;
const logger = { debug() {}, info() {}, warn() {}, error: console.error };
const ofWorker = (queues) =>
  connections(async () => {
    const types = Array.from({ length: queues }, (_, i) => ofQueue(`t${i}`, `q${i}`));
    const worker = new Worker({ connection, types, logger });
    await worker.start();
    return () => worker.stop();
  });
const counted = {
  "connections of a client": await connections(async () => {
    const client = new Client({ connection });
    await client.serverTime();
    return () => client.close();
  }),
  "connections of a node": await connections(async () => {
    const node = new Scheduler({ connection, logger });
    await node.start();
    return () => node.stop();
  }),
  "connections of a worker of one queue": await ofWorker(1),
  "more for each further queue": ((await ofWorker(5)) - (await ofWorker(1))) / 4,
};

const cluster = await startRedis({ config: { "cluster-enabled": "yes" } });
const peer = new Redis(cluster.url);
const tags = Array.from({ length: 100 }, (_, i) => `n${i % 7}:q${i}`);
const slots = await Promise.all(tags.map((tag) => peer.cluster("KEYSLOT", `{${tag}}:~tasks`)));
peer.disconnect();
await cluster.stop();

/** The formula, for what was filled in here; all jobs were kept, and not all events. */
const formula =
  measured[EVENTS] +
  memoryOf({ tasks: options.ran, perSecond: 0, queues: 0 }, options.runs) +
  RUNS * SIZES[JOB];
const share = (metric, value) => [target(metric, value, ">=", 0.9), target(metric, value, "<=", 1.1)];
print(
  {
    bench: "capacity",
    smoke: options.smoke,
    redis: field(await admin.info("server"), "redis_version"),
    targets: [
      ...Object.entries(SIZES).flatMap(([what, size]) =>
        share(`${what}, relative to the page`, measured[what] / size),
      ),
      ...share("memory of tasks, runs and jobs together, relative to the formula", whole / formula),
      target(
        "slots that are as Redis computes them",
        slots.filter((slot, i) => slot === slotOf(tags[i])).length,
        ">=",
        100,
      ),
      target(
        "connections that are as on the page",
        Object.values(counted).filter((count, i) => count === CONNECTIONS[i]).length,
        ">=",
        4,
      ),
    ],
    seen: {
      ...Object.fromEntries(Object.entries(measured).map(([what, size]) => [what, Math.round(size)])),
      ...counted,
    },
  },
  options.json,
);
if (!options.json) for (const one of Object.values(tables())) console.log(`\n${one}`);
admin.disconnect();
await server.stop();
process.exit(0);
