// The figures and formulas of docs/capacity.md, whose tables are made here. The bench `capacity` measures the sizes.
import { randomOf } from "../../lib/random.mjs";

export const JOB = "job that has ended, with its place in BullMQ's list";

export const EVENTS = "BullMQ's stream of the newest 10,000 events of a queue";

/** Bytes of Redis memory. */
export const SIZES = {
  task: 540,
  "one with a payload of 95 bytes, a time limit and retries": 830,
  "one with a payload of 200 bytes": 830,
  "statistics of a task that has run": 278,
  "first update of a task: the definition that it replaces": 400,
  "record of a kept run": 424,
  "its place in the history of its task": 55,
  "its place in the journal of its queue": 137,
  "record of a triggered run": 1_096,
  "record of one that failed, with its stack": 1_440,
  [JOB]: 1_490,
  [EVENTS]: 874_000,
};

/** Connections of a client, a node, a worker of one queue, and more for each further queue of it. */
export const CONNECTIONS = [1, 2, 4, 2];

/** Occurrences a second with their runs, as `bench:sustained` measures them, that fill a core of Redis; and the share of it to plan with. */
const [FULL, SHARE] = [1_800, 0.7];
/** Memory to plan for one master, in bytes. */
const MASTER = 16e9;
/** Time in s for which a successful run is kept, and its job, and the most such jobs of a queue. */
const KEPT = { run: 7 * 86_400, job: 600, jobs: 10_000 };
const QUEUES_OF_A_MASTER = 10;
const [CONCURRENCY, RUN] = [50, 1];

/**
 * Bytes of Redis memory.
 * @param {{ tasks: number, perSecond: number, queues: number }} load
 * @param {number} kept runs of each task
 */
export function memoryOf({ tasks, perSecond, queues }, kept) {
  const task = SIZES.task + (kept > 0 ? SIZES["statistics of a task that has run"] : 0);
  const run =
    SIZES["record of a kept run"] +
    SIZES["its place in the history of its task"] +
    SIZES["its place in the journal of its queue"];
  const jobs = Math.min(perSecond * KEPT.job, KEPT.jobs * queues);
  return tasks * (task + kept * run) + jobs * SIZES[JOB] + queues * SIZES[EVENTS];
}

/** @param {number} seconds of a run */
function workersFor(perSecond, seconds, concurrency = CONCURRENCY) {
  return Math.ceil((perSecond * seconds) / concurrency) + 1;
}

/**
 * Masters, queues, nodes and workers for tasks that run each `period` s and keep at most 10 runs each.
 * @param {number} [given] masters; default: as many as CPU or memory need
 */
function fleetFor(tasks, period, given) {
  const perSecond = tasks / period;
  const kept = (most) => Math.min(most, Math.floor(KEPT.run / period));
  const memory = (queues, most) => memoryOf({ tasks, perSecond, queues }, kept(most));
  const needed = [perSecond / (FULL * SHARE), memory(QUEUES_OF_A_MASTER, 10) / MASTER];
  const masters = given ?? Math.ceil(Math.max(1, ...needed));
  const queues = masters === 1 ? 1 : masters * QUEUES_OF_A_MASTER;
  return {
    ...{ tasks, period, perSecond, masters, queues },
    nodes: masters === 1 ? 2 : 3,
    workers: workersFor(perSecond, RUN),
    memory: memory(queues, 100),
    memoryOf10: memory(queues, 10),
  };
}

/** Simulation: the 99th percentile, in s, of the wait for one of `places`, of runs that come at random and take the same time. */
function waitFor(perSecond, seconds, places, seed = 1) {
  const random = randomOf(seed);
  /** Ends of the newest runs, in turn: with one duration, the place that is free first is the one taken first. */
  const ends = new Float64Array(places);
  const waits = [];
  let now = 0;
  for (let i = 0; now < 300 * seconds; i++) {
    now -= Math.log(1 - random()) / perSecond;
    const start = Math.max(now, ends[i % places]);
    ends[i % places] = start + seconds;
    if (now > 100 * seconds) waits.push(start - now);
  }
  return waits.sort((a, b) => a - b)[Math.floor(waits.length * 0.99)] ?? 0;
}

/** Simulation: the load of the busiest master relative to an even share, median of as many namespaces. Slots are shared evenly. */
function busiestShare(masters, queuesOfEach, namespaces = 300) {
  const queues = masters * queuesOfEach;
  const shares = Array.from({ length: namespaces }, (_, n) => {
    const loads = new Uint32Array(masters);
    for (let q = 0; q < queues; q++) loads[Math.floor((slotOf(`n${n}:q${q}`) * masters) / 16_384)] += 1;
    return Math.max(...loads) / queuesOfEach;
  });
  return shares.sort((a, b) => a - b)[namespaces >> 1];
}

/** The slot of a hash tag. */
export function slotOf(tag) {
  let crc = 0;
  for (let i = 0; i < tag.length; i++) {
    crc ^= tag.charCodeAt(i) << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}

const [MINUTE, HOUR, DAY] = [60, 3_600, 86_400];
/** @type {[name: string, tasks: number, period: number, masters?: number][]} */
const FLEETS = [
  ["100, each minute", 100, MINUTE],
  ["10,000, each minute", 10_000, MINUTE],
  ["60,000, each minute", 60_000, MINUTE],
  ["1 million, each hour", 1e6, HOUR],
  ["10 million, each day", 1e7, DAY],
  ["100 million, each day", 1e8, DAY, 30],
];

/** The tables of docs/capacity.md, as Markdown. */
export function tables() {
  const shares = new Map();
  const shareOf = (masters, each) => {
    const name = `${masters} ${each}`;
    if (!shares.has(name)) shares.set(name, busiestShare(masters, each));
    return shares.get(name);
  };
  const fleets = FLEETS.map(([name, tasks, period, given]) => {
    const fleet = fleetFor(tasks, period, given);
    const { masters, queues, perSecond, workers, memory, memoryOf10 } = fleet;
    const busiest = masters === 1 ? 1 : shareOf(masters, queues / masters);
    const wait = (count) => seconds(waitFor(perSecond, RUN, count * CONCURRENCY));
    return [
      ...[name, round(perSecond), fleet.nodes, workers, wait(workers), wait(workers - 1)],
      ...[`${masters}, ${queues}`, bytes(memory), bytes(memoryOf10), bytes((memoryOf10 / masters) * busiest)],
    ];
  });
  const counts = [3, 10, 30];
  return {
    sizes: table(
      ["in Redis", "bytes"],
      Object.entries(SIZES).map(([what, size]) => [what, size.toLocaleString("en-US")]),
    ),
    fleets: table(
      [
        ...["tasks", "occurrences a second", "nodes", "workers", "wait, p99", "with one less"],
        ...["masters, queues", "memory, 100 kept", "10 kept", "largest master"],
      ],
      fleets,
    ),
    masters: table(
      ["queues for each master", ...counts.map((count) => `${count} masters`)],
      [1, 3, 10, 30, 100].map((each) => [each, ...counts.map((count) => shareOf(count, each).toFixed(2))]),
    ),
  };
}

function table(head, rows) {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** Two significant digits. */
function round(value) {
  return Number(value.toPrecision(2)).toLocaleString("en-US");
}

function bytes(value) {
  return value < 1e9 ? `${round(value / 1e6)} MB` : `${round(value / 1e9)} GB`;
}

function seconds(value) {
  return value < 1 ? `${Math.round(value * 1_000)} ms` : value < 10 ? `${value.toFixed(1)} s` : "grows";
}
