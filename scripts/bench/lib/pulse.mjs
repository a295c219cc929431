// Tasks that are due again and again, ours or those of BullMQ's Job Schedulers, with plain workers; and the look at one window of
// it. A row is one job: when it was due, when its handler began, when it was produced, whose it is. Ours need no workers to be
// produced; without any, they are read from the queue at the end.
import { fileURLToPath } from "node:url";
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Node, pause } from "../../measure/nodes.mjs";
import { startCrew } from "./crew.mjs";

const QUEUE = "pulse";
const NAMESPACE = "pulse";
const WORKER = fileURLToPath(new URL("./plain-worker.mjs", import.meta.url));
const CONCURRENCY = "100";
/** Nothing more came for so long: that was all; sooner where all are there, and only what is doubled could still come. */
const QUIET = { short: 2_000, complete: 500 };
const PATIENCE = 20_000;
/** Runs later than this many ms are missed. */
const LATEST = 2_000;
const PAGE = 1_000;
/** Puts a second that may be expected of both on a slow machine. */
const [OUR_PUTS, THEIR_PUTS] = [8_000, 2_000];

const startWorkers = (server, count, prefix) =>
  startCrew(
    WORKER,
    Array.from({ length: count }, () => [server.url, QUEUE, prefix, CONCURRENCY]),
  );

/** Ours, so many ms into each second. */
export const everySecond = (offset) => ({
  every: "1s",
  origin: new Date(Date.UTC(2020, 0, 1) + offset).toISOString(),
});

/**
 * @param {any} server
 * @param {{ nodes: number, workers: number, tasks: number, schedule: (i: number, second: number) => import("@carillon/sdk").ScheduleInput }} options
 */
export async function startOurs(server, { nodes, workers, tasks, schedule }) {
  const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: NAMESPACE };
  const replicas = Array.from({ length: nodes }, (_, i) => new Node(`node-${i}`, env));
  await Promise.all(replicas.map((node) => node.running));
  const prefix = bullPrefix(NAMESPACE, QUEUE);
  const crew =
    workers > 0 ? await startWorkers(server, workers, prefix) : left(server, `${prefix}:${QUEUE}:`);
  const client = new Client({ connection: server.url, namespace: NAMESPACE });
  const second = await secondAfter(server, tasks / OUR_PUTS);
  await client.putMany(
    Array.from({ length: tasks }, (_, i) => ({
      id: `t${i}`,
      type: "pulse",
      queue: QUEUE,
      schedule: schedule(i, second),
    })),
  );
  await client.close();
  return {
    ...crew,
    second,
    async stop() {
      await crew.stop();
      await Promise.all(replicas.map((node) => node.stop()));
    },
  };
}

/** Jobs that wait in a queue without workers. */
function left({ admin }, bull) {
  const seen = [];
  return {
    seen,
    stop: () => {},
    async collect() {
      for (let from = 0; ; from += PAGE) {
        const ids = await admin.lrange(`${bull}wait`, from, from + PAGE - 1);
        const texts = await Promise.all(ids.map((id) => admin.hget(bull + id, "data")));
        for (const { occurrence } of texts.map((text) => JSON.parse(text)))
          seen.push([occurrence.due, undefined, occurrence.enqueued, occurrence.task]);
        if (ids.length < PAGE) return;
      }
    },
  };
}

/** A full second by which so many seconds of puts, and some more, are over. */
async function secondAfter(server, seconds) {
  return Math.ceil((await server.time()) / 1000 + seconds) * 1000 + 2_000;
}

/**
 * @param {any} server
 * @param {{ workers: number, tasks: number, repeat: (i: number, second: number) => object }} options `second`: soon, a full one
 */
export async function startTheirs(server, { workers, tasks, repeat }) {
  const queue = new Queue(QUEUE, { connection: { url: server.url } });
  await queue.waitUntilReady();
  const crew = await startWorkers(server, workers, "bull");
  const second = await secondAfter(server, tasks / THEIR_PUTS);
  for (let from = 0; from < tasks; from += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, tasks - from) }, (_, j) =>
        queue.upsertJobScheduler(`t${from + j}`, repeat(from + j, second), {
          name: "pulse",
          data: {},
          opts: { removeOnComplete: true },
        }),
      ),
    );
  }
  await queue.close();
  return { ...crew, second };
}

/**
 * The rows due within so many full seconds after the warm-up, once all had time to come; and what Redis did in those seconds.
 * Stops whoever was watched.
 *
 * @param {any} server
 * @param {any} crew from `startOurs` or `startTheirs`
 * @param {{ rate: number, warmup: number, seconds: number }} options
 */
export async function watch(server, { seen, stop, collect, second }, { rate, warmup, seconds }) {
  const now = await server.time();
  await pause((second ?? now) - now + warmup * 1000);
  const from = Math.ceil((await server.time()) / 1000) * 1000;
  const to = from + seconds * 1000;
  await pause(from - (await server.time()));
  const before = await server.work();
  await pause(to - (await server.time()));
  const after = await server.work();
  const window = () => seen.filter(([due]) => due >= from && due < to);
  await (collect ? pause(LATEST) : settled(() => window().length, rate * seconds));
  await stop();
  await collect?.();
  return { rows: window(), commands: after.commands - before.commands, cpu: after.cpu - before.cpu };
}

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

/** How often each occurrence came: `once` and more often, by task and time; what of `expected` never did. */
export function count(rows, expected) {
  const times = new Map();
  for (const [due, , , task] of rows) {
    const key = `${task}@${due}`;
    times.set(key, (times.get(key) ?? 0) + 1);
  }
  const once = [...times.values()].filter((seen) => seen === 1).length;
  return { once, doubled: times.size - once, missed: expected - times.size };
}
