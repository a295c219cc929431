// The life of occurrences, from due to the end of their runs, beside other systems in the same run: how many came, when
// their handlers began, and the CPU and commands that each cost, for many loads. First one worker drains a queue.
// A bench with a miss or a duplicate of ours fails. `--only "full second"` measures the loads with this in their name.

import { writeChart } from "./lib/chart.mjs";
import { startBusyLoops } from "./lib/crew.mjs";
import { drainRounds } from "./lib/drain.mjs";
import { readOptions } from "./lib/options.mjs";
import { count, everySecond, startOurs, startPeer, startTheirs, watch } from "./lib/pulse.mjs";
import { median, percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  { limit: [120, 4], runs: [10_000, 400], rounds: [2, 1], seconds: [10, 2], warmup: [6, 2], concurrency: 50 },
  ["only", "chart"],
);
const EACH_SECOND = "* * * * * *";
/** Tasks due each second, spread over it; one node, two workers, one queue, and handlers that do nothing. */
const SPREAD = { tasks: 1_000, nodes: 1, workers: 2, queues: 1, handler: "empty", busy: 0, full: false };
const FULL = { ...SPREAD, tasks: 200, nodes: 3, workers: 3, full: true };
const PEERS = ["Carillon, plain workers", "Agenda", "croner and a lock", "node-cron and a lock"];

/**
 * Each load, with its targets: of our start p50 and CPU, as a share of Job Schedulers'. `beside` names further systems.
 * @type {Record<string, typeof SPREAD & { p50?: number, cpu?: number, beside?: string[] }>}
 */
const LOADS = {
  "1 a second": { ...SPREAD, tasks: 1 },
  "10 a second": { ...SPREAD, tasks: 10 },
  "100 a second": { ...SPREAD, tasks: 100 },
  "1,000 a second": SPREAD,
  "1,000 a second, 5 ms": { ...SPREAD, handler: "5 ms", p50: 4, cpu: 1.1 },
  "500 a second, 1 ms of CPU": { ...SPREAD, tasks: 500, handler: "1 ms of CPU" },
  "1,000 a second, 1 ms of CPU": { ...SPREAD, handler: "1 ms of CPU", p50: 4, cpu: 1.1 },
  "10 queues, 5 ms": { ...SPREAD, queues: 10, handler: "5 ms" },
  "100 queues, 5 ms": { ...SPREAD, queues: 100, handler: "5 ms" },
  "3 nodes, 5 ms": { ...SPREAD, nodes: 3, handler: "5 ms" },
  "10 nodes, 5 ms": { ...SPREAD, nodes: 10, handler: "5 ms" },
  "full second": { ...FULL, p50: 0.25, beside: PEERS },
  "full second, 5 ms": { ...FULL, handler: "5 ms" },
  "full second, 1,000 tasks": { ...FULL, tasks: 1_000 },
  "2 busy loops": { ...SPREAD, busy: 2 },
  "4 busy loops": { ...SPREAD, busy: 4 },
};
/** Numbers of nodes, queues and the like cost nothing on the other side. */
const ALONE = ["10 queues, 5 ms", "3 nodes, 5 ms", "10 nodes, 5 ms"];
const size = (load) => (options.smoke ? { ...load, tasks: Math.min(20, load.tasks), nodes: 1 } : load);

const SIDES = {
  Carillon: (server, load) =>
    startOurs(server, {
      ...load,
      schedule: (i) =>
        load.full ? { cron: EACH_SECOND, timezone: "UTC" } : everySecond((i * 1000) / load.tasks),
    }),
  "Carillon, plain workers": (server, load) => SIDES.Carillon(server, { ...load, plain: true }),
  "Job Schedulers": (server, load) =>
    startTheirs(server, {
      ...load,
      repeat: (i, second) =>
        load.full
          ? { pattern: EACH_SECOND }
          : { every: 1_000, startDate: second + Math.floor((i * 1000) / load.tasks) },
    }),
  Agenda: (server, load) => startPeer(server, "agenda", { replicas: load.nodes, tasks: load.tasks }),
  "croner and a lock": (server, load) =>
    startPeer(server, "croner", { replicas: load.nodes, tasks: load.tasks }),
  "node-cron and a lock": (server, load) =>
    startPeer(server, "node-cron", { replicas: load.nodes, tasks: load.tasks }),
};
let redis;

/** One row: an occurrence's lateness and cost. */
async function measure(name, side) {
  const load = size(LOADS[name]);
  const server = await startServer();
  const loops = startBusyLoops(load.busy);
  const watched = await SIDES[side](server, load);
  const { rows, ...spent } = await watch(server, watched, { ...options, rate: load.tasks });
  await loops.stop();
  redis = await server.version();
  await server.stop();
  const { once, doubled, missed } = count(rows, load.tasks * options.seconds);
  const came = Math.max(1, once + doubled);
  const late = rows.map(([due, started]) => started - due);
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(late, share));
  const [redisUs, workersUs, nodesUs] = [spent.cpu, spent.workers, spent.nodes].map((s) => (1e6 * s) / came);
  const commit = rows.map(([due, , produced]) => produced - due);
  const row = {
    load: name,
    side,
    once,
    doubled,
    missed,
    skipped: spent.skipped ?? "",
    "p50 ms": p50,
    p95,
    p99,
    "commit p99": percentile(commit, 0.99),
    "Redis us": redisUs,
    "workers us": workersUs,
    "nodes us": nodesUs,
    "all us": redisUs + workersUs + nodesUs,
    commands: spent.commands / came,
    "Redis MB": spent.memory / 1e6,
  };
  console.error(
    `  ${JSON.stringify(row, (_, value) => (typeof value === "number" ? Math.round(value) : value))}`,
  );
  return row;
}

const wanted = (name) => name.includes(options.only ?? "");
const loads = Object.keys(options.smoke ? { "10 a second": 0, "full second": 0 } : LOADS).filter(wanted);
if (loads.length === 0 && !wanted("drain"))
  throw new Error(
    `--only: neither "drain" nor any of ${Object.keys(LOADS).join("; ")} has that in its name.`,
  );

const drained = [];
if (wanted("drain")) {
  const server = await startServer();
  drained.push(...(await drainRounds(server, { ...options, warmup: options.smoke ? 0 : 1 })));
  redis = await server.version();
  await server.stop();
}
const rows = [];
for (let round = 0; round < options.rounds; round++)
  for (const load of loads)
    for (const side of ["Carillon", ...(ALONE.includes(load) ? [] : ["Job Schedulers"])])
      rows.push(await measure(load, side));
for (const load of loads) for (const side of LOADS[load].beside ?? []) rows.push(await measure(load, side));

const drainRatio = (pick) => median(drained.map(({ Carillon, BullMQ }) => pick(Carillon) / pick(BullMQ)));
/** The median of all rounds. */
const seen = (load, side, column) =>
  median(rows.filter((row) => row.load === load && row.side === side).map((row) => row[column]));
const peer = (load, column) =>
  seen(load, "Carillon", column) / Math.max(1, seen(load, "Job Schedulers", column));
const growth = (load, column) =>
  seen(load, "Carillon", column) / Math.max(1, seen("1,000 a second, 5 ms", "Carillon", column));
const ours = rows.filter(({ side }) => side === "Carillon");
const sum = (column) => ours.reduce((total, row) => total + row[column], 0);
const has = (...names) => names.every((name) => loads.includes(name));
const when = (holds, list) => (holds ? list() : []);
const targets = [
  ...when(drained.length > 0, () => [
    target(
      "drain: runs a second, of BullMQ's worker's",
      drainRatio(({ rate }) => rate),
      ">=",
      0.75,
    ),
    target(
      "drain: Redis CPU of a run, times theirs",
      drainRatio((one) => one.redis),
      "<=",
      1.6,
    ),
    target(
      "drain: worker CPU of a run, times theirs",
      drainRatio((one) => one.process),
      "<=",
      1,
    ),
    target("drain: recorded", Math.min(...drained.map(({ Carillon }) => Carillon.recorded)), ">=", 1),
  ]),
  ...loads.flatMap((load) => {
    const { p50, cpu } = LOADS[load];
    return [
      ...(p50 ? [target(`${load}: start p50, times Job Schedulers'`, peer(load, "p50 ms"), "<=", p50)] : []),
      ...(cpu ? [target(`${load}: CPU of all, times theirs`, peer(load, "all us"), "<=", cpu)] : []),
    ];
  }),
  ...when(has("1,000 a second, 5 ms", "100 queues, 5 ms"), () => [
    target("100 queues: start p50, times that of one", growth("100 queues, 5 ms", "p50 ms"), "<=", 3),
  ]),
  ...when(has("1,000 a second, 5 ms", "3 nodes, 5 ms"), () => [
    target("3 nodes: their CPU, times that of one", growth("3 nodes, 5 ms", "nodes us"), "<=", 1.2),
  ]),
  ...when(has("1,000 a second, 5 ms", "10 nodes, 5 ms"), () => [
    target("10 nodes: their CPU, times that of one", growth("10 nodes, 5 ms", "nodes us"), "<=", 1.5),
  ]),
  ...when(ours.length > 0, () => [
    target("occurrences missed", sum("missed"), "<=", 0),
    target("occurrences doubled", sum("doubled"), "<=", 0),
  ]),
];
print(
  {
    bench: "life",
    smoke: options.smoke,
    redis,
    targets,
    seen: { "seconds, rounds": `${options.seconds}, ${options.rounds}` },
    table: rows,
  },
  options.json,
);
if (options.chart) {
  writeChart(
    options.chart,
    "Ms from due to the handler's start, median",
    loads.flatMap((load) => [
      { label: `Carillon, ${load}`, value: seen(load, "Carillon", "p50 ms"), ours: true },
      ...(ALONE.includes(load)
        ? []
        : [{ label: `Job Schedulers, ${load}`, value: seen(load, "Job Schedulers", "p50 ms") }]),
    ]),
  );
}
if (!options.smoke && targets.some(({ metric, pass }) => metric.startsWith("occurrences") && !pass))
  process.exitCode = 1;
