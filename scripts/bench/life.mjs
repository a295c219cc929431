// The whole life of a run: claim, take, start, handler, end, and the removal of its job, which is kept for two seconds here.
// Three parts, each compared with other systems in the same run: one worker drains a queue; many tasks are due at each
// full second; many tasks are due each second, spread over it, once more with busy loops alongside (`--busy 2`).
import { startBusyLoops } from "./lib/crew.mjs";
import { drainRounds } from "./lib/drain.mjs";
import { readOptions } from "./lib/options.mjs";
import { count, everySecond, startOurs, startPeer, startTheirs, watch } from "./lib/pulse.mjs";
import { median, percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  {
    ...{
      runs: [10_000, 400],
      rounds: [3, 1],
      seconds: [15, 2],
      warmup: [6, 3],
      busy: [2, 0],
      concurrency: 50,
    },
    ...{ full: [200, 20], nodes: [3, 1], spread: [1_000, 40] },
  },
  ["only"],
);
const EACH_SECOND = { cron: "* * * * * *", timezone: "UTC" };
let redis;

/** Parts with their sides: what makes the tasks due, and works them. */
const FULL = { nodes: options.nodes, workers: options.nodes, tasks: options.full };
const SPREAD = { nodes: 1, workers: 2, tasks: options.spread };
const offset = (i) => Math.floor((i * 1000) / SPREAD.tasks);
const full = {
  Carillon: (server) => startOurs(server, { ...FULL, schedule: () => EACH_SECOND }),
  "Carillon, plain workers": (server) =>
    startOurs(server, { ...FULL, plain: true, schedule: () => EACH_SECOND }),
  "Job Schedulers": (server) =>
    startTheirs(server, { ...FULL, repeat: () => ({ pattern: EACH_SECOND.cron }) }),
  Agenda: (server) => startPeer(server, "agenda", { replicas: FULL.nodes, tasks: FULL.tasks }),
};
const spread = {
  Carillon: (server) => startOurs(server, { ...SPREAD, schedule: (i) => everySecond(offset(i)) }),
  "Job Schedulers": (server) =>
    startTheirs(server, {
      ...SPREAD,
      repeat: (i, second) => ({ every: 1_000, startDate: second + offset(i) }),
    }),
};
const PARTS = {
  "full second": { sides: full, tasks: FULL.tasks, busy: 0 },
  spread: { sides: spread, tasks: SPREAD.tasks, busy: 0 },
  ...(options.busy > 0 ? { "spread, busy": { sides: spread, tasks: SPREAD.tasks, busy: options.busy } } : {}),
};

/** One row: an occurrence's lateness and cost. */
async function measure(part, side) {
  const { sides, tasks, busy } = PARTS[part];
  const server = await startServer();
  const loops = startBusyLoops(busy);
  const watched = await sides[side](server);
  const { rows, ...spent } = await watch(server, watched, { ...options, rate: tasks });
  await loops.stop();
  redis = await server.version();
  await server.stop();
  const { once, doubled, missed } = count(rows, tasks * options.seconds);
  const came = Math.max(1, once + doubled);
  const late = rows.map(([due, started]) => started - due);
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(late, share));
  const [redisUs, workersUs, nodesUs] = [spent.cpu, spent.workers, spent.nodes].map((s) => (1e6 * s) / came);
  const row = {
    ...{ part, side, once, doubled, missed, skipped: spent.skipped ?? "", "p50 ms": p50, p95, p99 },
    ...{ "Redis us": redisUs, "workers us": workersUs, "nodes us": nodesUs },
    ...{ "all us": redisUs + workersUs + nodesUs, commands: spent.commands / came },
  };
  console.error(
    `  ${JSON.stringify(row, (_, value) => (typeof value === "number" ? Math.round(value) : value))}`,
  );
  return row;
}

const wanted = (name) => name.includes(options.only ?? "");
const parts = Object.keys(PARTS).filter(wanted);
if (parts.length === 0 && !wanted("drain"))
  throw new Error(
    `--only: neither "drain" nor any of ${Object.keys(PARTS).join("; ")} has that in its name.`,
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
  for (const part of parts)
    for (const side of Object.keys(PARTS[part].sides)) rows.push(await measure(part, side));

const drainRatio = (pick) => median(drained.map(({ Carillon, BullMQ }) => pick(Carillon) / pick(BullMQ)));
/** The median of all rounds. */
const seen = (part, side, column) =>
  median(rows.filter((row) => row.part === part && row.side === side).map((row) => row[column]));
const ratio = (part, column, peer = "Job Schedulers") =>
  seen(part, "Carillon", column) / Math.max(1, seen(part, peer, column));
const ours = rows.filter(({ side }) => side === "Carillon");
const targets = [
  ...(drained.length === 0
    ? []
    : [
        target(
          "drain: runs a second, of BullMQ's worker's",
          drainRatio(({ rate }) => rate),
          ">=",
          0.7,
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
          0.8,
        ),
        target("drain: recorded", Math.min(...drained.map(({ Carillon }) => Carillon.recorded)), ">=", 1),
      ]),
  ...(parts.includes("full second")
    ? [
        target("full second: start p50, of Job Schedulers'", ratio("full second", "p50 ms"), "<=", 0.3),
        target("full second: start p50, of Agenda's", ratio("full second", "p50 ms", "Agenda"), "<=", 1),
        target("full second: start p99, of Job Schedulers'", ratio("full second", "p99"), "<=", 0.5),
        target(
          "full second: commands of an occurrence",
          seen("full second", "Carillon", "commands"),
          "<=",
          52,
        ),
      ]
    : []),
  ...parts
    .filter((part) => part.startsWith("spread"))
    .flatMap((part) => [
      target(`${part}: CPU of all, of Job Schedulers'`, ratio(part, "all us"), "<=", 1.3),
      target(
        `${part}: start p50, of Job Schedulers'`,
        ratio(part, "p50 ms"),
        "<=",
        part === "spread" ? 0.2 : 1,
      ),
    ]),
  ...(ours.length === 0
    ? []
    : [
        target("occurrences doubled", Math.max(...ours.map((row) => row.doubled)), "<=", 0),
        target("occurrences missed", Math.max(...ours.map((row) => row.missed)), "<=", 0),
      ]),
];
print(
  {
    bench: "life",
    ...{ smoke: options.smoke, redis, targets },
    seen: Object.fromEntries(
      ["Carillon", "BullMQ"]
        .filter(() => drained.length > 0)
        .map((side) => {
          const of = (pick) => Math.round(median(drained.map((pair) => pick(pair[side]))));
          const [rate, redisUs, workerUs] = [
            of((one) => one.rate),
            of((one) => one.redis),
            of((one) => one.process),
          ];
          const text = `${rate} a second, ${redisUs} us of Redis, ${workerUs} us of its own, ${of((one) => one.commands)} commands`;
          return [`drain, ${side}`, text];
        }),
    ),
    table: rows,
  },
  options.json,
);
process.exit(0);
