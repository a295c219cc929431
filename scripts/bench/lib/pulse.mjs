// Tasks that are due repeatedly, ours, those of BullMQ's Job Schedulers, or those of another peer, and the measurement
// of one window. Workers on our side are ours or, with `plain`, BullMQ's. A row is one job: when it was due, when its
// handler began, when it was produced, and its task.
import { fileURLToPath } from "node:url";
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause } from "../../lib/nodes.mjs";
import { startCrew } from "./crew.mjs";
import { processCpu } from "./process-cpu.mjs";

const queuesOf = (count) => Array.from({ length: count }, (_, i) => `pulse${i}`);
const NAMESPACE = "pulse";
const [PLAIN_WORKER, OUR_WORKER, REPLICA] = ["plain-worker", "our-worker", "peer-replica"].map((name) =>
  fileURLToPath(new URL(`./${name}.mjs`, import.meta.url)),
);
const CONCURRENCY = 100;
/**
 * A window is complete after this many ms without a row; sooner if all rows are there, and only duplicates could still
 * come.
 */
const QUIET = { short: 2_000, complete: 500 };
const PATIENCE = 20_000;
/** Expected puts per second of both on a slow machine. */
const [OUR_PUTS, THEIR_PUTS] = [8_000, 2_000];

/** @param where BullMQ's prefix for a plain worker, the namespace for ours */
const startWorkers = (file, server, count, queues, where, handler) => {
  const options = { url: server.url, queues, where, concurrency: CONCURRENCY, handler };
  return startCrew(
    file,
    Array.from({ length: count }, () => [JSON.stringify(options)]),
  );
};

/** A schedule of ours that is due this many ms into each second. */
export const everySecond = (offset) => ({
  every: "1s",
  origin: new Date(Date.UTC(2020, 0, 1) + offset).toISOString(),
});

/**
 * @param {any} server
 * @param {{ nodes: number, workers: number, plain?: boolean, tasks: number, queues?: number, handler?: string,
 * schedule: (i: number, second: number) => import("@carillon/sdk").ScheduleInput }} options
 */
export async function startOurs(
  server,
  { nodes, workers, plain = false, tasks, queues: count = 1, handler = "empty", schedule },
) {
  const queues = queuesOf(count);
  const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: NAMESPACE };
  const replicas = Array.from({ length: nodes }, (_, i) => new Node(`node-${i}`, env));
  await Promise.all(replicas.map((node) => node.running));
  const crew = plain
    ? await startWorkers(PLAIN_WORKER, server, workers, queues, bullPrefix(NAMESPACE, queues[0]), handler)
    : await startWorkers(OUR_WORKER, server, workers, queues, NAMESPACE, handler);
  const client = new Client({ connection: server.url, namespace: NAMESPACE });
  const second = await secondAfter(server, tasks / OUR_PUTS);
  await client.putMany(
    Array.from({ length: tasks }, (_, i) => ({
      id: `t${i}`,
      type: queues[i % count],
      queue: queues[i % count],
      schedule: schedule(i, second),
    })),
  );
  await client.close();
  return {
    ...crew,
    second,
    nodes: replicas.map(({ child }) => child?.pid),
    skips: (from, to) => skipsOf(server, queues, tasks, from, to),
    async stop() {
      await crew.stop();
      await Promise.all(replicas.map((node) => node.stop()));
    },
  };
}

/**
 * Occurrences that were not enqueued according to the ledgers, by reason, of tasks that are due every second; `from`
 * and `to`: ms.
 */
async function skipsOf({ url }, queues, tasks, from, to) {
  const client = new Client({ connection: url, namespace: NAMESPACE });
  const found = {};
  for (let i = 0; i < tasks; i++) {
    for (const entry of await client.runs.skips({ id: `t${i}`, queue: queues[i % queues.length] })) {
      const times = (Math.min(entry.to, to - 1) - Math.max(entry.from, from)) / 1000;
      if (times >= 0) found[entry.reason] = (found[entry.reason] ?? 0) + Math.floor(times) + 1;
    }
  }
  await client.close();
  return found;
}

/** A full second in the future, late enough for puts that take this many seconds, with two seconds to spare. */
async function secondAfter(server, seconds) {
  return Math.ceil((await server.time()) / 1000 + seconds) * 1000 + 2_000;
}

/**
 * @param {any} server
 * @param {{ workers: number, tasks: number, queues?: number, handler?: string, repeat: (i: number, second: number) => object
 * }} options `second`: a full second in the near future
 */
export async function startTheirs(server, { workers, tasks, queues: count = 1, handler = "empty", repeat }) {
  const connection = new Redis(server.url, { maxRetriesPerRequest: null });
  const queues = queuesOf(count).map((name) => new Queue(name, { connection }));
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));
  const names = queues.map(({ name }) => name);
  const crew = await startWorkers(PLAIN_WORKER, server, workers, names, "bull", handler);
  const second = await secondAfter(server, tasks / THEIR_PUTS);
  for (let from = 0; from < tasks; from += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, tasks - from) }, (_, j) =>
        queues[(from + j) % count].upsertJobScheduler(`t${from + j}`, repeat(from + j, second), {
          name: "pulse",
          data: {},
          opts: { removeOnComplete: true },
        }),
      ),
    );
  }
  await Promise.all(queues.map((queue) => queue.close()));
  connection.disconnect();
  return { ...crew, second };
}

/** Starts replicas of a peer that needs no queue (peer-replica.mjs): its tasks are due at each full second. */
export function startPeer(server, peer, { replicas, tasks }) {
  return startCrew(
    REPLICA,
    Array.from({ length: replicas }, (_, i) => [peer, server.url, String(i), String(tasks)]),
  );
}

/**
 * The rows due within this many full seconds after the warm-up, once all had time to arrive; how many began in them, whenever due; the cost of those seconds:
 * commands of Redis, and CPU seconds of Redis, the workers (or replicas) and the nodes; the memory of Redis in bytes at
 * their end; and the skips in our ledgers.
 * Stops the crew.
 * @param {any} server
 * @param {any} crew from `startOurs`, `startTheirs` or `startPeer`
 * @param {{ rate: number, warmup: number, seconds: number }} options
 */
export async function watch(
  server,
  { seen, stop, second, pids, nodes = [], skips },
  { rate, warmup, seconds },
) {
  const now = await server.time();
  await pause((second ?? now) - now + warmup * 1000);
  const from = Math.ceil((await server.time()) / 1000) * 1000;
  const to = from + seconds * 1000;
  await pause(from - (await server.time()));
  const work = async () => ({ ...(await server.work()), workers: cpuOf(pids), nodes: cpuOf(nodes) });
  const before = await work();
  await pause(to - (await server.time()));
  const after = await work();
  const memory = await server.memory();
  const window = () => seen.filter(([due]) => due >= from && due < to);
  await settled(() => window().length, rate * seconds);
  await stop();
  const since = (what) => after[what] - before[what];
  return {
    rows: window(),
    began: seen.filter(([, start]) => start >= from && start < to).length,
    skipped: await skips?.(from, to),
    memory,
    commands: since("commands"),
    cpu: since("cpu"),
    workers: since("workers"),
    nodes: since("nodes"),
  };
}

const cpuOf = (pids) => pids.reduce((sum, pid) => sum + processCpu(pid), 0);

/** Waits until `come` no longer grows. */
async function settled(come, expected) {
  const end = Date.now() + PATIENCE;
  for (let before = -1, since = Date.now(); Date.now() < end; await pause(250)) {
    const now = come();
    if (now !== before) since = Date.now();
    before = now;
    if (Date.now() - since >= (now < expected ? QUIET.short : QUIET.complete)) return;
  }
}

/**
 * Number of occurrences that came `once`, and more often, by task and time; and of those in `expected` that never came.
 */
export function count(rows, expected) {
  const times = new Map();
  for (const [due, , , task] of rows) {
    const key = `${task}@${due}`;
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  const once = [...times.values()].filter((seen) => seen === 1).length;
  return { once, doubled: times.size - once, missed: expected - times.size };
}
