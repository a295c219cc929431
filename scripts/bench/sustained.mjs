// The highest rate of occurrences that can be sustained, compared with BullMQ's Job Schedulers. Many tasks, each due
// once in a while, are spread over the seconds. The rate rises until an occurrence is missed or the p99 from due to
// produced is over a second; then the last step is halved a few times. Ours is produced when the claim commits, and
// needs no workers; theirs when a worker takes it, because that creates the next one. Measured once more with workers
// on our side, ours and plain ones of BullMQ. Each step has its own Redis. The least and the most delayed of our shards
// show whether the nodes share the work evenly.
// With `--period 1` tasks are due again every second (and so on); ours then only with workers, because an open run
// blocks the next occurrence. With `--zones UTC,Europe/Paris` they have cron expressions in these zones, and so are due
// at full seconds.
import { shardOf } from "@carillon/core/internal";
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { count, startOurs, startTheirs, watch } from "./lib/pulse.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  {
    ...{ limit: [60, 4], from: [200, 40], factor: 1.5, steps: [12, 1], refine: [2, 0], tries: [2, 1] },
    ...{ seconds: [10, 1], warmup: [5, 2], period: 0, nodes: [3, 1], workers: [3, 1] },
  },
  ["chart", "zones"],
);
const FROM = options.from;
const FACTOR = options.factor;
const STEPS = options.steps;
const REFINE = options.refine;
/** On a busy machine a step may fail by chance; it counts as failed only if it fails each time. */
const TRIES = options.tries;
const SECONDS = options.seconds;
const WARMUP = options.warmup;
const NODES = options.nodes;
const WORKERS = options.workers;
const LIMIT = 1_000;
let redis;

const ZONES = options.zones?.split(",");
/**
 * Seconds between two times of a task; usually longer than the measurement, so that a task without workers never blocks
 * itself.
 */
const PERIOD = options.period || (ZONES ? 20 : WARMUP + SECONDS + 5);
if (ZONES && 60 % PERIOD !== 0) throw new Error("With --zones a minute is a multiple of --period.");
const begin = (i, second, rate) => second + Math.floor((i * 1000) / rate);
const zone = (i) => ZONES[i % ZONES.length];
function cron(i) {
  const seconds = Array.from({ length: 60 / PERIOD }, (_, turn) => (i % PERIOD) + turn * PERIOD);
  return `${seconds.join(",")} * * * * *`;
}
const ours = (workers, plain) => (server, rate) =>
  startOurs(server, {
    ...{ nodes: NODES, workers, plain, tasks: rate * PERIOD },
    schedule(i, second) {
      if (ZONES) return { cron: cron(i), timezone: zone(i), start: new Date(second).toISOString() };
      const origin = new Date(begin(i, second, rate)).toISOString();
      return { every: `${PERIOD}s`, origin, start: origin };
    },
  });
const theirs = (server, rate) =>
  startTheirs(server, {
    ...{ workers: WORKERS, tasks: rate * PERIOD },
    repeat(i, second) {
      if (ZONES) return { pattern: cron(i), tz: zone(i), startDate: second };
      return { every: 1000 * PERIOD, startDate: begin(i, second, rate) };
    },
  });

async function step(who, start, rate) {
  const server = await startServer();
  const watched = await start(server, rate);
  const { rows, cpu } = await watch(server, watched, { rate, warmup: WARMUP, seconds: SECONDS });
  redis = await server.version();
  await server.stop();
  const { once, doubled, missed } = count(rows, rate * SECONDS);
  const late = rows.map(([due, , produced]) => produced - due);
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(late, share));
  const held = missed === 0 && p99 <= LIMIT;
  return {
    who,
    rate,
    produced: once + doubled,
    missed,
    doubled,
    "p50 ms": p50,
    "p99 ms": p99,
    "Redis CPU %": (100 * cpu) / SECONDS,
    ...(start === theirs ? {} : { "p99 ms of shards": ofShards(rows) }),
    held: held ? "yes" : "no",
  };
}

/** The shards that are least and most behind. */
function ofShards(rows) {
  const late = new Map();
  for (const [due, , produced, task] of rows) {
    const shard = shardOf(`system/${task}`);
    if (!late.has(shard)) late.set(shard, []);
    late.get(shard).push(produced - due);
  }
  const each = [...late.values()].map((shard) => percentile(shard, 0.99));
  return each.length > 0 ? `${Math.min(...each)} to ${Math.max(...each)}` : "none";
}

/** Raises the rate while it holds, or lowers it until it does, then searches between the two. */
async function highest(who, start, from) {
  const steps = [];
  const bounds = { good: 0, bad: Number.POSITIVE_INFINITY };
  const between = () => bounds.good > 0 && bounds.bad < Number.POSITIVE_INFINITY;
  async function attempt(rate) {
    let held = false;
    for (let i = 0; i < TRIES && !held; i++) {
      const result = await step(who, start, rate);
      console.error(`  ${who}: ${rate} a second, p99 ${result["p99 ms"]} ms, ${result.missed} missed`);
      steps.push(result);
      held = result.held === "yes";
    }
    bounds[held ? "good" : "bad"] = rate;
    return held;
  }
  let rate = from;
  for (let i = 0; i < STEPS && rate >= 1 && !between(); i++) {
    rate = Math.round((await attempt(rate)) ? rate * FACTOR : rate / FACTOR);
  }
  for (let i = 0; i < REFINE && between(); i++)
    await attempt(Math.round(Math.sqrt(bounds.good * bounds.bad)));
  return { rate: bounds.good, steps, ended: bounds.bad < Number.POSITIVE_INFINITY };
}

const peer = await highest("Job Schedulers", theirs, FROM);
const worked = await highest("Carillon, worked", ours(WORKERS), Math.max(FROM, peer.rate));
const plain = await highest("Carillon, plain workers", ours(WORKERS, true), Math.max(FROM, peer.rate));
const mine = options.period ? worked : await highest("Carillon", ours(0), Math.max(FROM, peer.rate));
const said = ({ rate, ended }) => (ended ? rate : `${rate}, where the steps ended, not it`);
print(
  {
    bench: "sustained",
    smoke: options.smoke,
    redis,
    targets: [
      target(
        "highest rate with none missed, times Job Schedulers'",
        mine.rate / Math.max(1, peer.rate),
        ">=",
        5,
      ),
    ],
    seen: {
      schedules: ZONES ? `cron in ${ZONES.join(", ")}` : `every ${PERIOD} s`,
      "occurrences a second": said(mine),
      "with workers beside": said(worked),
      "the same, times Job Schedulers'": worked.rate / Math.max(1, peer.rate),
      "with plain workers beside": said(plain),
      "Job Schedulers' a second": said(peer),
      "seconds a step": SECONDS,
      "nodes, workers": `${NODES}, ${WORKERS}`,
    },
    table: [...new Set([...mine.steps, ...worked.steps, ...plain.steps, ...peer.steps])],
  },
  options.json,
);
if (options.chart) {
  writeChart(options.chart, "Kept up: occurrences a second, none missed, p99 under 1 s", [
    { label: `Carillon, ${NODES} nodes`, value: mine.rate, ours: true },
    { label: "Carillon, and workers", value: worked.rate, ours: true },
    { label: "Carillon, and plain workers", value: plain.rate, ours: true },
    { label: "Job Schedulers", value: peer.rate },
  ]);
}
