// A million stored tasks: cost of a put, size of a task, and whether operations on few tasks become slower. Two
// servers, one with a thousand tasks and one with all, are measured in turns; compared with BullMQ's Job Schedulers.
import { execFileSync } from "node:child_process";
import { decide, shardOf } from "@carillon/core/internal";
import { Client } from "@carillon/sdk";
import { dueTask } from "@carillon/store";
import { storeOf } from "@carillon/store/internal";
import { Queue } from "bullmq";
import { Node, pause } from "../lib/nodes.mjs";
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({ tasks: [1_000_000, 3_000], claims: [300, 20], settle: [20, 0.5] }, ["chart"]);
const TASKS = options.tasks;
const CLAIMS = options.claims;
const FEW = 1_000;
const SLICE = 10_000;
const THEIRS = Math.min(20_000, TASKS);
const namespace = "scale";
const QUEUE = "mail";
const ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Sydney", "Asia/Kolkata"];

const CLOCKS = ZONES.map(
  (timeZone) => new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" }),
);

/** 12-byte ids, an owner each, once a day at a minute of its own; none within the next hours. */
function task(i, now) {
  const timezone = ZONES[i % ZONES.length];
  const far = new Date(now + (6 + (i % 16)) * 3_600_000 + (i % 3_600) * 1_000);
  const [hour, minute] = CLOCKS[i % ZONES.length].format(far).split(":").map(Number);
  const id = `task-${String(i).padStart(7, "0")}`;
  return {
    id,
    owner: `u${i}`,
    type: "mail",
    queue: QUEUE,
    schedule: { cron: `${minute} ${hour} * * *`, timezone },
    payload: {},
  };
}

const small = await startServer();
const big = await startServer();
const open = ({ url }) => new Client({ connection: url, namespace });
const clients = { small: open(small), big: open(big) };

async function fill(client, server, count) {
  const now = await server.time();
  let ms = 0;
  for (let from = 0; from < count; from += SLICE) {
    // Creating the definitions is not part of the measurement.
    const tasks = Array.from({ length: Math.min(SLICE, count - from) }, (_, i) => task(from + i, now));
    const begin = performance.now();
    await client.putMany(tasks);
    ms += performance.now() - begin;
  }
  return (1000 * count) / ms;
}

await fill(clients.small, small, FEW);
// Loads the scripts, which are no memory of tasks; as theirs below.
await fill(clients.big, big, 1);
const before = await big.memory();
const rate = await fill(clients.big, big, TASKS);
const bytes = ((await big.memory()) - before) / (TASKS - 1);

async function startNode({ url }, id) {
  const begin = performance.now();
  const node = new Node(id, { REDIS_URL: url, CARILLON_NAMESPACE: namespace });
  await node.running;
  return { node, ms: performance.now() - begin };
}
const rss = ({ child }) =>
  Number(execFileSync("ps", ["-o", "rss=", "-p", String(child.pid)], { encoding: "utf8" })) * 1024;

const startsOf = { small: [], big: [] };
const running = {};
for (let round = 0; round < (options.smoke ? 1 : 3); round++) {
  for (const [which, server] of Object.entries({ small, big })) {
    await running[which]?.stop();
    const { node, ms } = await startNode(server, `${which}-${round}`);
    running[which] = node;
    startsOf[which].push(ms);
  }
}
await pause(options.settle * 1000);
const resident = { small: rss(running.small), big: rss(running.big) };
for (const node of Object.values(running)) await node.stop();

/** One due task, from the read of its shard to the answer of the commit, in µs. No node is running. */
async function claim(client, server, n) {
  const store = storeOf(client);
  const id = `due-${n}`;
  let at;
  for (let ahead = 50, state; state !== "scheduled"; ahead *= 2) {
    at = Math.ceil((await server.time()) + ahead);
    ({ state } = await client.put({ id, type: "mail", queue: QUEUE, schedule: { at }, overlap: "allow" }));
  }
  while ((await server.time()) < at + 1) await pause(2);
  const shard = shardOf(`system/${id}`);
  const begin = performance.now();
  const { now, entries } = await store.claims.readDue(QUEUE, shard, 40);
  // The task can be read, because this version put it.
  const readable = /** @type {import("@carillon/store").ClaimItem["entry"][]} */ (entries);
  const token = `bench${n}`;
  const items = readable.map((entry) => {
    const decision = decide(dueTask(entry, store.calendars.schedules), now);
    return store.claims.pack(QUEUE, { entry, decision }, token, now);
  });
  const { results } = await store.claims.commit(QUEUE, items, { token, node: "bench" });
  const took = (performance.now() - begin) * 1000;
  if (results.length !== 1 || results[0].status !== "OK")
    throw new Error(`Not what was to be measured: ${JSON.stringify(results)}`);
  return took;
}
const claims = { small: [], big: [] };
for (let n = 0; n < CLAIMS; n++) {
  for (const which of n % 2 ? ["small", "big"] : ["big", "small"]) {
    const took = await claim(clients[which], which === "small" ? small : big, n);
    if (n >= CLAIMS / 10) claims[which].push(took);
  }
}

const theirServer = await startServer();
const queue = new Queue(QUEUE, { connection: { url: theirServer.url } });
await queue.waitUntilReady();
const upsert = (n) => {
  const { id, schedule } = task(n, Date.now());
  const repeat = { pattern: schedule.cron, tz: schedule.timezone };
  return queue.upsertJobScheduler(id, repeat, { name: "mail", data: {} });
};
await upsert(0);
const theirBefore = await theirServer.memory();
const theirBegin = performance.now();
for (let from = 0; from < THEIRS; from += 100) {
  await Promise.all(Array.from({ length: Math.min(100, THEIRS - from) }, (_, i) => upsert(from + i)));
}
const theirRate = (1000 * THEIRS) / (performance.now() - theirBegin);
const theirBytes = ((await theirServer.memory()) - theirBefore) / (THEIRS - 1);
await queue.close();

const latency = median(claims.big) / median(claims.small);
const growth = (resident.big - resident.small) / 2 ** 20;
print(
  {
    bench: "scale",
    smoke: options.smoke,
    redis: await big.version(),
    targets: [
      target("tasks put a second", rate, ">=", 15_000),
      target("bytes of a task", bytes, "<=", 600),
      target("share of a Job Scheduler's bytes", bytes / theirBytes, "<=", 0.5),
      target("node start to ready, ms (median)", median(startsOf.big), "<=", 1_000),
      target("claim, times as long as among 1,000", latency, "<=", 1.2),
      target("resident memory of a node beyond one of 1,000 tasks, MB", growth, "<=", 20),
    ],
    seen: {
      tasks: TASKS,
      "claim us": `${median(claims.big).toFixed(0)} (among 1,000: ${median(claims.small).toFixed(0)})`,
      "node start ms": `${startsOf.big.map(Math.round).join(" ")} (with 1,000: ${startsOf.small.map(Math.round).join(" ")})`,
      "node resident MB": `${(resident.big / 2 ** 20).toFixed(0)} (with 1,000: ${(resident.small / 2 ** 20).toFixed(0)})`,
      "Job Schedulers": `${Math.round(theirBytes)} bytes each, ${Math.round(theirRate)} upserts a second (${THEIRS})`,
      "times as many puts as upserts": rate / theirRate,
    },
  },
  options.json,
);
if (options.chart) {
  writeChart(options.chart, "A stored task that never ran: bytes of Redis memory", [
    { label: "Carillon task", value: bytes, ours: true },
    { label: "BullMQ Job Scheduler", value: theirBytes },
  ]);
}
for (const client of Object.values(clients)) await client.close();
await Promise.all([small.stop(), big.stop(), theirServer.stop()]);
