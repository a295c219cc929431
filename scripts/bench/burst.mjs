// 10,000 tasks due at one instant: three nodes as processes, with all defaults and without workers, from the first due
// time to the last commit; compared with BullMQ's addBulk of the same job data by one client. Rounds alternate on one
// Redis. Then the lateness of six tasks of each of ten owners, alone and with a crowd of another owner at the same instant.
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause } from "../lib/nodes.mjs";
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  { tasks: [10_000, 600], nodes: 3, rounds: [5, 1], warmup: [3, 0], chunk: 250, crowd: [20_000, 600] },
  ["chart"],
);
const TASKS = options.tasks;
const ROUNDS = options.rounds;
const CHUNK = options.chunk;
/** Time before the instant at which all preparation is done, in ms. */
const SHORTLY = 20;
const namespace = "burst";
const QUEUE = "reports";

const server = await startServer();
const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace, CARILLON_LOG_LEVEL: "warn" };
const nodes = Array.from(
  { length: options.nodes },
  (_, i) => new Node(`node-${i}`, { ...env, CARILLON_LOG_LEVEL: "info" }),
);
await Promise.all(nodes.map((node) => node.running));
const client = new Client({ connection: server.url, namespace });
const connection = new Redis(server.url, { maxRetriesPerRequest: null });
const prefix = bullPrefix(namespace, QUEUE);
const queue = new Queue(QUEUE, { connection, prefix });
const plain = new Queue(QUEUE, { connection, prefix: "plain" });
await Promise.all([queue.waitUntilReady(), plain.waitUntilReady()]);

/** Schedules of several kinds and zones that share one instant, once a day. */
function schedulesAt(instant) {
  const number = (text) => String(Number(text));
  return ["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"].flatMap((timezone) => {
    const parts = new Intl.DateTimeFormat("en-GB", {
      timeZone: timezone,
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    }).formatToParts(instant);
    const [hour, minute, second] = ["hour", "minute", "second"].map((type) =>
      number(parts.find((part) => part.type === type)?.value),
    );
    return [
      { cron: `${second} ${minute} ${hour} * * *`, timezone },
      { cron: `${second} ${minute} ${hour} * * 0-6`, timezone },
    ];
  });
}

/**
 * Puts tasks that are due at one instant, at least a second before it.
 *
 * @param seconds for the put; on a busy machine, twice as many
 */
async function putAll(count, ownerOf, seconds = count / 8_000 + 1.5) {
  const instant = Math.ceil((await server.time()) / 1000 + seconds) * 1000;
  const schedules = schedulesAt(instant);
  await client.putMany(
    Array.from({ length: count }, (_, i) => ({
      id: `report-${String(i).padStart(5, "0")}`,
      owner: ownerOf(i),
      type: "report",
      queue: QUEUE,
      schedule: schedules[i % schedules.length],
      payload: { customer: i, format: "pdf" },
    })),
  );
  if (instant - (await server.time()) >= 1_000) return instant;
  await server.clear();
  return putAll(count, ownerOf, 2 * seconds);
}

async function ours() {
  const instant = await putAll(TASKS, (i) => `team-${i % 20}`);
  const ahead = instant - (await server.time());
  // Work of nodes ahead of the instant counts as well.
  await server.blocks();
  const [cpu, calls] = await Promise.all([server.cpu(), server.calls()]);
  await pause(ahead - SHORTLY);
  const cpuAtInstant = await server.cpu();
  await pause(SHORTLY);
  for (let found = 0; found < TASKS; found = await queue.getWaitingCount()) await pause(100);
  const after = await server.cpu();
  const callsAfter = await server.calls();
  const blocks = await server.blocks();
  const jobs = await queue.getJobs(["wait"], 0, -1);
  const commits = jobs.map(({ data }) => data.occurrence.enqueued);
  const early = Math.min(...commits) < instant;
  if (early || jobs.length !== TASKS) throw new Error("Not what was to be measured.");
  const result = {
    ms: Math.max(...commits) - instant,
    first: Math.min(...commits) - instant,
    cpu: after - cpu,
    cpuFromInstant: after - cpuAtInstant,
    blocks,
    calls: Object.fromEntries(
      [...callsAfter]
        .map(([name, count]) => [name, (count - (calls.get(name) ?? 0)) / TASKS])
        .filter(([, count]) => count >= 0.02)
        .sort((a, b) => b[1] - a[1]),
    ),
  };
  await server.clear();
  return { result, jobs: jobs.map(({ name, data }) => ({ name, data })) };
}

async function theirs(jobs) {
  const cpu = await server.cpu();
  const begin = performance.now();
  for (let i = 0; i < jobs.length; i += CHUNK) await plain.addBulk(jobs.slice(i, i + CHUNK));
  const ms = performance.now() - begin;
  const result = { ms, cpu: (await server.cpu()) - cpu };
  await server.clear();
  return result;
}

/** Lateness of the tasks of small owners, in ms. @param crowd number of tasks of one owner at the same instant */
async function lateness(crowd) {
  const small = 60;
  // By name the crowd comes first.
  const instant = await putAll(small + crowd, (i) => (i < small ? `owner-${i % 10}` : "crowd"));
  for (let found = 0; found < small + crowd; found = await queue.getWaitingCount()) await pause(100);
  const jobs = await queue.getJobs(["wait"], 0, -1);
  await server.clear();
  return jobs.flatMap(({ data: { occurrence } }) =>
    occurrence.owner === "crowd" ? [] : [occurrence.enqueued - instant],
  );
}

const rounds = [];
/** @type {{ alone: number[], crowded: number[] }} */
const small = { alone: [], crowded: [] };
// Node.js compiles hot code first, which the warm-up rounds leave out.
for (let round = -options.warmup; round < ROUNDS; round++) {
  const { result: mine, jobs } = await ours();
  const peer = await theirs(jobs);
  const [alone, crowded] = [await lateness(0), await lateness(options.crowd)];
  if (round < 0) continue;
  rounds.push({ mine, peer });
  small.alone.push(...alone);
  small.crowded.push(...crowded);
}
const blocks = rounds.flatMap(({ mine }) => mine.blocks);
const ratio = median(rounds.map(({ mine, peer }) => peer.ms / mine.ms));
const cpuRatio = median(rounds.map(({ mine, peer }) => mine.cpu / peer.cpu));
const each = (pick) => rounds.map((round) => Math.round(pick(round))).join(" ");
print(
  {
    bench: "burst",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target("occurrences a second, as a share of addBulk's", ratio, ">=", 1),
      target("Redis CPU of an occurrence, times addBulk's", cpuRatio, "<=", 1.5),
      target(
        "small owners beside a crowd at one instant, p99 late, times the same alone",
        percentile(small.crowded, 0.99) / Math.max(1, percentile(small.alone, 0.99)),
        "<=",
        5,
      ),
      target("one script holds Redis, p99 ms of those over 1 ms", percentile(blocks, 0.99) || 0, "<=", 10),
    ],
    seen: {
      "occurrences a second": median(rounds.map(({ mine }) => (1000 * TASKS) / mine.ms)),
      "addBulk a second": median(rounds.map(({ peer }) => (1000 * TASKS) / peer.ms)),
      "ms of each round": each(({ mine }) => mine.ms),
      "ms of each round, addBulk": each(({ peer }) => peer.ms),
      "Redis CPU us of an occurrence": median(rounds.map(({ mine }) => (1e6 * mine.cpu) / TASKS)),
      "of these from the instant on": median(rounds.map(({ mine }) => (1e6 * mine.cpuFromInstant) / TASKS)),
      "Redis CPU us, addBulk": median(rounds.map(({ peer }) => (1e6 * peer.cpu) / TASKS)),
      "due to first commit, ms": each(({ mine }) => mine.first),
      "small owners alone, p50 and p99 ms late": [0.5, 0.99].map((p) => percentile(small.alone, p)).join(" "),
      "the same beside a crowd": [0.5, 0.99].map((p) => percentile(small.crowded, p)).join(" "),
      "script p50 ms": percentile(blocks, 0.5) || 0,
      "scripts over 1 ms": blocks.length,
      "commands of an occurrence": rounds.at(-1)?.mine.calls ?? {},
    },
  },
  options.json,
);
if (options.chart) {
  writeChart(options.chart, "10,000 at one instant: jobs a second", [
    {
      label: "Carillon, 3 nodes",
      value: median(rounds.map(({ mine }) => (1000 * TASKS) / mine.ms)),
      ours: true,
    },
    { label: "addBulk, 1 client", value: median(rounds.map(({ peer }) => (1000 * TASKS) / peer.ms)) },
  ]);
}
await client.close();
await Promise.all([queue.close(), plain.close()]);
connection.disconnect();
await Promise.all(nodes.map((node) => node.stop()));
await server.stop();
