// No node ran while 100,000 tasks became due (catchUp: one). Then three nodes start: how fast the backlog is drained,
// compared with addBulk of the same number of jobs; how late occurrences are that become due meanwhile; and how long
// one script blocks Redis.
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause } from "../lib/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({ tasks: [100_000, 1_000], nodes: 3 });
const TASKS = options.tasks;
/** Number of tasks that become due while the backlog is drained, one every few ms from the nodes' start on. */
const MEANWHILE = options.smoke ? 20 : 500;
const EACH = 10;
const START_WITHIN = 3_000;
const QUEUE = "reports";
const namespace = "resume";
const server = await startServer();
const client = new Client({ connection: server.url, namespace });
const connection = new Redis(server.url, { maxRetriesPerRequest: null });
const queue = new Queue(QUEUE, { connection, prefix: bullPrefix(namespace, QUEUE) });
const plain = new Queue(QUEUE, { connection, prefix: "plain" });

// Late enough that all are put before, on a busy machine too: others would be due an hour later.
const origin = new Date((await server.time()) + 5_000 + TASKS / 4).toISOString();
for (let from = 0; from < TASKS; from += 10_000) {
  await client.putMany(
    Array.from({ length: Math.min(10_000, TASKS - from) }, (_, i) => ({
      id: `report-${from + i}`,
      owner: `team-${i % 20}`,
      type: "report",
      queue: QUEUE,
      schedule: { every: "1h", origin },
      payload: { customer: i, format: "pdf" },
    })),
  );
}
await pause(new Date(origin).getTime() - (await server.time()) + 500);
const first = Math.ceil((await server.time()) + START_WITHIN);
await client.putMany(
  Array.from({ length: MEANWHILE }, (_, i) => ({
    id: `fresh-${i}`,
    owner: "fresh",
    type: "report",
    queue: QUEUE,
    schedule: { at: first + i * EACH },
  })),
);
await server.blocks();
const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace };
const nodes = Array.from({ length: options.nodes }, (_, i) => new Node(`node-${i}`, env));
for (let found = 0; found < TASKS + MEANWHILE; found = await queue.getWaitingCount()) await pause(250);
await Promise.all(nodes.map((node) => node.stop()));

const jobs = await queue.getJobs(["wait"], 0, -1);
const occurrences = jobs.map(({ data }) => data.occurrence);
const backlog = occurrences.filter(({ owner }) => owner !== "fresh").map(({ enqueued }) => enqueued);
// Not Math.max(...), which does not accept that many arguments.
const began = backlog.reduce((a, b) => Math.min(a, b));
const ended = backlog.reduce((a, b) => Math.max(a, b));
const late = occurrences
  .filter(({ owner, due }) => owner === "fresh" && due >= began && due <= ended)
  .map(({ due, enqueued }) => enqueued - due);
const blocks = await server.blocks();
const rate = (1000 * TASKS) / Math.max(1, ended - began);

const begin = performance.now();
for (let i = 0; i < jobs.length; i += 250) {
  await plain.addBulk(jobs.slice(i, i + 250).map(({ name, data }) => ({ name, data })));
}
const theirRate = (1000 * jobs.length) / (performance.now() - begin);
print(
  {
    bench: "resume",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target("backlog drained, as a share of addBulk's rate", rate / theirRate, ">=", 1),
      target("what comes due meanwhile: due to commit, p99 ms", percentile(late, 0.99) || 0, "<=", 250),
      target("one script holds Redis, p99 ms of those over 1 ms", percentile(blocks, 0.99) || 0, "<=", 10),
    ],
    seen: {
      "overdue tasks": TASKS,
      "drained a second": rate,
      "addBulk a second": theirRate,
      "came due meanwhile": late.length,
      "p50 ms": percentile(late, 0.5) || 0,
    },
  },
  options.json,
);
await Promise.all([queue.close(), plain.close()]);
connection.disconnect();
await client.close();
await server.stop();
