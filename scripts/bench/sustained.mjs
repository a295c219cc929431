// The highest rate of occurrences that holds with as many workers on both sides, ours and Job Schedulers', and what
// becomes of it beyond: none may get lost, and as many must start each second. Tasks are due once in a while, spread over
// the seconds. The rate rises until an occurrence is missed or the p99 from due to the handler's start is over a second;
// then the last step is halved a few times. Each step has its own Redis. `--handler "5 ms"`: handlers that wait so long.
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { count, startOurs, startTheirs, watch } from "./lib/pulse.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  {
    limit: [60, 4],
    from: [1_500, 40],
    factor: 1.3,
    steps: [8, 1],
    refine: [2, 0],
    tries: [2, 1],
    seconds: [10, 1],
    warmup: [6, 2],
    period: 5,
    nodes: 1,
    workers: 2,
  },
  ["chart", "handler"],
);
const { seconds, warmup, period, nodes, workers } = options;
const LIMIT = 1_000;
const BEYOND = 1.25;
const HANDLERS = options.handler ? [options.handler] : options.smoke ? ["empty"] : ["empty", "5 ms"];
let redis;

const begin = (i, second, rate) => second + Math.floor((i * 1000) / rate);
const SIDES = {
  Carillon: (server, handler, rate) =>
    startOurs(server, {
      nodes,
      workers,
      handler,
      tasks: rate * period,
      schedule(i, second) {
        const origin = new Date(begin(i, second, rate)).toISOString();
        return { every: `${period}s`, origin, start: origin };
      },
    }),
  "Job Schedulers": (server, handler, rate) =>
    startTheirs(server, {
      workers,
      handler,
      tasks: rate * period,
      repeat: (i, second) => ({ every: 1000 * period, startDate: begin(i, second, rate) }),
    }),
};

async function step(side, handler, rate) {
  const server = await startServer();
  const watched = await SIDES[side](server, handler, rate);
  const { rows, began, cpu } = await watch(server, watched, { rate, warmup, seconds });
  redis = await server.version();
  await server.stop();
  const { doubled, missed } = count(rows, rate * seconds);
  const late = rows.map(([due, started]) => started - due);
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(late, share));
  const row = {
    side,
    handler,
    rate,
    missed,
    doubled,
    "started a second": began / seconds,
    "p50 ms": p50,
    "p99 ms": p99,
    "Redis CPU %": (100 * cpu) / seconds,
    held: missed === 0 && p99 <= LIMIT ? "yes" : "no",
  };
  console.error(`  ${JSON.stringify(row)}`);
  return row;
}

/** Raises the rate while it holds, or lowers it until it does, then searches between the two. */
async function highest(side, handler) {
  const steps = [];
  const bounds = { good: 0, bad: Number.POSITIVE_INFINITY };
  const between = () => bounds.good > 0 && bounds.bad < Number.POSITIVE_INFINITY;
  async function attempt(rate) {
    let held = false;
    // On a busy machine a step may fail by chance; it counts as failed only if it fails each time.
    for (let i = 0; i < options.tries && !held; i++) {
      const result = await step(side, handler, rate);
      steps.push(result);
      held = result.held === "yes";
    }
    bounds[held ? "good" : "bad"] = rate;
    return held;
  }
  let rate = options.from;
  for (let i = 0; i < options.steps && rate >= 1 && !between(); i++)
    rate = Math.round((await attempt(rate)) ? rate * options.factor : rate / options.factor);
  for (let i = 0; i < options.refine && between(); i++)
    await attempt(Math.round(Math.sqrt(bounds.good * bounds.bad)));
  const beyond = await step(side, handler, Math.round(BEYOND * Math.max(1, bounds.good)));
  return { rate: bounds.good, beyond, steps: [...steps, { ...beyond, held: "beyond" }] };
}

const found = [];
for (const handler of HANDLERS)
  found.push({
    handler,
    peer: await highest("Job Schedulers", handler),
    mine: await highest("Carillon", handler),
  });
const LEAST = { empty: 0.95, "5 ms": 0.8 };
print(
  {
    bench: "sustained",
    smoke: options.smoke,
    redis,
    targets: found.flatMap(({ handler, peer, mine }) => [
      target(
        `highest rate, times Job Schedulers', ${handler}`,
        mine.rate / Math.max(1, peer.rate),
        ">=",
        LEAST[handler] ?? 0.8,
      ),
      target(
        `started a second at ${BEYOND} times that rate, of that rate, ${handler}`,
        mine.beyond["started a second"] / Math.max(1, mine.rate),
        ">=",
        0.95,
      ),
      target(`missed beyond it, ${handler}`, mine.beyond.missed, "<=", 0),
    ]),
    seen: Object.fromEntries(
      found.map(({ handler, peer, mine }) => [
        `${handler}: highest rate, theirs`,
        `${mine.rate}, ${peer.rate} a second`,
      ]),
    ),
    table: found.flatMap(({ peer, mine }) => [...peer.steps, ...mine.steps]),
  },
  options.json,
);
if (options.chart) {
  writeChart(
    options.chart,
    "Kept up: occurrences a second, none missed, p99 under 1 s",
    found.flatMap(({ handler, peer, mine }) => [
      { label: `Carillon, ${handler}`, value: mine.rate, ours: true },
      { label: `Job Schedulers, ${handler}`, value: peer.rate },
    ]),
  );
}
