// So many occurrences a second, for a while, with workers: how late is the commit (by the script's own time), and how late does the
// handler start? Once spread over the second, once all at the full second; and the same with BullMQ's Job Schedulers and as many of
// the same workers. Each part has a Redis of its own, one after the other.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Node, pause } from "../measure/nodes.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const { values: options } = parseArgs({
  options: {
    rate: { type: "string", default: "1000" },
    seconds: { type: "string", default: "60" },
    warmup: { type: "string", default: "15" },
    nodes: { type: "string", default: "3" },
    workers: { type: "string", default: "2" },
    smoke: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const RATE = Number(options.smoke ? 50 : options.rate);
const SECONDS = Number(options.smoke ? 2 : options.seconds);
const WARMUP = Number(options.smoke ? 2 : options.warmup);
const QUEUE = "pulse";
const namespace = "late";
const WORKER = fileURLToPath(new URL("./lib/plain-worker.mjs", import.meta.url));

async function startWorkers(server, prefix) {
  const seen = [];
  const workers = await Promise.all(
    Array.from({ length: Number(options.workers) }, async () => {
      const child = fork(WORKER, [server.url, QUEUE, prefix, "100"]);
      await new Promise((resolve) => child.once("message", resolve));
      child.on("message", (batch) => seen.push(...batch));
      return child;
    }),
  );
  const stop = () =>
    Promise.all(
      workers.map((child) => {
        child.kill("SIGTERM");
        return new Promise((resolve) => child.once("exit", resolve));
      }),
    );
  return { seen, stop };
}

/** The occurrences due within the window, once all had time to come. */
async function watch(server, { seen, stop }) {
  await pause(WARMUP * 1000);
  const from = Math.ceil((await server.time()) / 1000) * 1000;
  const to = from + SECONDS * 1000;
  await pause(to - (await server.time()) + 3_000);
  await stop();
  const window = seen.filter(([due]) => due >= from && due < to);
  return {
    count: window.length,
    start: window.map(([due, started]) => started - due),
    commit: window.filter(([, , enqueued]) => enqueued > 0).map(([due, , enqueued]) => enqueued - due),
  };
}

async function ours(spread) {
  const server = await startServer();
  const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace };
  const nodes = Array.from({ length: Number(options.nodes) }, (_, i) => new Node(`node-${i}`, env));
  await Promise.all(nodes.map((node) => node.running));
  const client = new Client({ connection: server.url, namespace });
  const workers = await startWorkers(server, bullPrefix(namespace, QUEUE));
  await client.putMany(
    Array.from({ length: RATE }, (_, i) => {
      const origin = new Date(Date.UTC(2020, 0, 1) + (spread ? Math.floor((i * 1000) / RATE) : 0));
      return {
        id: `t${i}`,
        type: "pulse",
        queue: QUEUE,
        schedule: { every: "1s", origin: origin.toISOString() },
        overlap: "allow",
      };
    }),
  );
  const result = await watch(server, workers);
  await client.close();
  await Promise.all(nodes.map((node) => node.stop()));
  const redis = await server.version();
  await server.stop();
  return { ...result, redis };
}

/** Their `every` begins when it is put: spread or together as the puts are. */
async function theirs(spread) {
  const server = await startServer();
  const queue = new Queue(QUEUE, { connection: { url: server.url } });
  await queue.waitUntilReady();
  const workers = await startWorkers(server, "bull");
  const base = Math.ceil(Date.now() / 1000) * 1000;
  for (let from = 0; from < RATE; from += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, RATE - from) }, (_, j) => {
        const offset = spread ? Math.floor(((from + j) * 1000) / RATE) : 0;
        return queue.upsertJobScheduler(
          `t${from + j}`,
          { every: 1_000, startDate: base + 2_000 + offset },
          { name: "pulse", data: {}, opts: { removeOnComplete: true } },
        );
      }),
    );
  }
  const result = await watch(server, workers);
  await queue.close();
  await server.stop();
  return result;
}

const spread = { mine: await ours(true), peer: await theirs(true) };
const full = { mine: await ours(false), peer: await theirs(false) };
const expected = RATE * SECONDS;
const quantiles = (values) =>
  values.length === 0
    ? "none"
    : [0.5, 0.95, 0.99].map((share) => Math.round(percentile(values, share))).join(" / ");
const handler = (part, side) => percentile(part[side].start, 0.5);
print(
  {
    bench: "lateness",
    smoke: options.smoke,
    redis: spread.mine.redis,
    targets: [
      target("due to commit, p99 ms, spread", percentile(spread.mine.commit, 0.99), "<=", 25),
      target(
        "handler start p50, times sooner than Job Schedulers, spread",
        handler(spread, "peer") / Math.max(1, handler(spread, "mine")),
        ">=",
        10,
      ),
      target("share of the occurrences that came, spread", spread.mine.count / expected, ">=", 1),
    ],
    seen: Object.fromEntries(
      Object.entries({ spread, "full second": full }).flatMap(([name, { mine, peer }]) => [
        [`${name}: due to commit, p50 / p95 / p99 ms`, quantiles(mine.commit)],
        [`${name}: due to handler start`, quantiles(mine.start)],
        [`${name}: theirs`, quantiles(peer.start)],
        [`${name}: occurrences that came, theirs`, `${mine.count}, ${peer.count} of ${expected}`],
      ]),
    ),
  },
  options.json,
);
