// A constant rate of occurrences, with workers: lateness of the commit (by the script's own time) and of the handler's
// start. Once spread over the second, once all at the full second; and the same with BullMQ's Job Schedulers and the
// same number of workers. Each part has its own Redis, one after the other.
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { everySecond, startOurs, startTheirs, watch } from "./lib/pulse.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  { rate: [1_000, 50], seconds: [60, 2], warmup: [15, 2], nodes: [3, 1], workers: 2 },
  ["chart"],
);
const RATE = options.rate;
const SECONDS = options.seconds;
const WARMUP = options.warmup;
const NODES = options.nodes;
const WORKERS = options.workers;

async function part(start, options) {
  const server = await startServer();
  const watched = await start(server, { workers: WORKERS, tasks: RATE, ...options });
  const { rows } = await watch(server, watched, { rate: RATE, warmup: WARMUP, seconds: SECONDS });
  const redis = await server.version();
  await server.stop();
  return {
    redis,
    count: rows.length,
    start: rows.map(([due, started]) => started - due),
    commit: rows.map(([due, , enqueued]) => enqueued - due),
  };
}

const ours = (spread) => part(startOurs, { nodes: NODES, schedule: (i) => everySecond(offset(spread, i)) });

/** Their `every` counts from the put, so the puts are spread or together. */
const theirs = (spread) =>
  part(startTheirs, {
    repeat: (i, second) => ({ every: 1_000, startDate: second + offset(spread, i) }),
  });

const offset = (spread, i) => (spread ? Math.floor((i * 1000) / RATE) : 0);

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
if (options.chart) {
  const bars = Object.entries({ "spread over the second": spread, "all at the full second": full });
  writeChart(
    options.chart,
    `${RATE.toLocaleString("en-US")} a second: ms from due to the handler's start, median`,
    bars.flatMap(([name, part]) => [
      { label: `Carillon, ${name}`, value: handler(part, "mine"), ours: true },
      { label: `Job Schedulers, ${name}`, value: handler(part, "peer") },
    ]),
  );
}
