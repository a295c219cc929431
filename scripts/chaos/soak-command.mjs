// The soak: 500 tasks each second, worked by workers, faults throughout.
import { parseArgs } from "node:util";
import { Client } from "@carillon/sdk";
import { pause } from "../lib/nodes.mjs";
import { redisBinary } from "../lib/setup.mjs";
import { Crew } from "./crew.mjs";
import { availableFaults } from "./faults/index.mjs";
import { makePlan } from "./plan.mjs";
import { Samples } from "./samples.mjs";
import { openServers } from "./servers.mjs";
import { Storm } from "./storm.mjs";
import { Tally } from "./tally.mjs";
import { copies, runDir } from "./versions.mjs";

const NAMESPACE = "soak";
const QUEUES = ["soak-a", "soak-b", "soak-c", "soak-d"];
const WORKERS = 3;
/** Time between two faults, in ms: occasional, as in a bad night, not as in the battery. */
const PACE = { node: 2_000, worker: 30_000, redis: 45_000 };
/** A second run for an occurrence older than this, in ms, would not be noticed. */
const REMEMBER = 120_000;
const SAMPLE_EVERY = 5_000;
/** Short retention, so that growth shows: jobs for 20 s, and ten runs per task. */
const RETENTION = {
  completedJobs: { for: 20_000 },
  failedJobs: { for: 20_000 },
  successes: 10,
  failures: 10,
};
/** Ratio of late to early values above which a series grows. */
const GROWTH = 1.3;
/** Allowance on top of that: MB, or keys. */
const SLACK = 30;
/** Time without progress after which missing occurrences count as lost, in ms. */
const PATIENCE = 120_000;

export async function soak(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "30" },
      nodes: { type: "string", default: "5" },
      /** Occurrences a second. */
      rate: { type: "string", default: "500" },
      seed: { type: "string", default: String(Date.now() % 100_000) },
      only: { type: "string", default: "" },
      json: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
    },
  });
  const options = {
    minutes: Number(values.minutes),
    nodes: Number(values.nodes),
    rate: Number(values.rate),
    seed: Number(values.seed),
    only: values.only.split(",").filter(Boolean),
    verbose: values.verbose,
  };
  process.env.CARILLON_REDIS_SERVER = await redisBinary();
  const report = await run(options);
  print(report);
  const { duplicates, gaps, ...rest } = report;
  if (values.json) console.log(JSON.stringify({ ...rest, duplicates: duplicates.length, gaps: gaps.length }));
  return reasons(report).length === 0 ? 0 : 1;
}

async function run({ minutes, nodes, rate, seed, only, verbose }) {
  const dir = runDir();
  const { current } = copies(dir);
  const servers = await openServers("single");
  const client = new Client({ connection: servers.url, namespace: NAMESPACE });
  const tally = new Tally(1_000, REMEMBER);
  const samples = new Samples();
  const crew = new Crew({
    servers,
    namespace: NAMESPACE,
    dir,
    version: current,
    verbose,
    onStarted: (event) => tally.started(event),
    onAck: () => {},
  });
  let timer;
  try {
    await client.putMany(tasks(rate));
    for (let i = 0; i < nodes; i++) await crew.addNode(`n${i}`);
    for (let i = 0; i < WORKERS; i++) {
      await crew.addWorker(`w${i}`, {
        CHAOS_QUEUES: QUEUES.join(","),
        CHAOS_RETENTION: JSON.stringify(RETENTION),
        CHAOS_CONCURRENCY: "10",
      });
    }
    // The processes whose memory is measured are never killed; other faults may hit them.
    const watched = [...crew.nodes.slice(0, 2), crew.workers[0]];
    for (const child of watched) child.spared = true;
    await crew.start();
    timer = setInterval(() => {
      tally.tidy();
      servers
        .masters()
        .then((masters) => samples.take(watched, masters))
        .catch(() => {}); // Redis may be down
    }, SAMPLE_EVERY);

    const ms = minutes * 60_000;
    const world = { servers, namespace: NAMESPACE, jumps: [] };
    const storm = new Storm(crew, world, { verbose });
    const { faults } = availableFaults({ topology: "single", only, has: {} });
    await storm.run(
      makePlan({ faults: faults.filter(({ once }) => !once), probes: [], ms, seed, pace: PACE }),
      ms,
    );

    await crew.heal();
    const deadline = await client.serverTime();
    const cursors = await comeToRest(client, tally, deadline);
    clearInterval(timer);
    await crew.stop();
    return {
      seed,
      minutes,
      nodes,
      rate,
      occurrences: tally.occurrences,
      faults: storm.results.length,
      effectiveFaults: storm.results.filter(({ effective }) => effective).length,
      duplicates: tally.duplicates,
      gaps: tally.gaps(cursors),
      trends: samples.trends(),
      problems: crew.problems,
    };
  } finally {
    clearInterval(timer);
    await crew.kill();
    await client.close();
    await servers.stop();
  }
}

/** Tasks due in four parts of each second. */
/** @returns {import("@carillon/sdk").TaskInput[]} */
function tasks(rate) {
  return Array.from({ length: rate }, (_, i) => ({
    id: `s${i}`,
    type: "job",
    queue: QUEUES[i % QUEUES.length],
    schedule: {
      every: "1s",
      origin: `1970-01-01T00:00:00.${String(250 * (Math.floor(i / 4) % 4)).padStart(3, "0")}Z`,
    },
    overlap: "allow",
    catchUp: "all",
    payload: { least: 0, most: 0, fails: 0 },
    retention: { successes: RETENTION.successes, failures: RETENTION.failures },
    crash: { delay: "300ms", attempts: 100 },
  }));
}

/**
 * Waits until a worker has received all occurrences due by the deadline.
 * @returns {Promise<Map<string, number>>} the cursors at that time
 */
async function comeToRest(client, tally, deadline) {
  const cursors = new Map();
  for (const queue of QUEUES) {
    for (let cursor; ; ) {
      const page = await client.list({ queue, limit: 1_000, cursor });
      for (const { id } of page.tasks) cursors.set(`${queue}/${id}`, 0);
      cursor = page.cursor;
      if (!cursor) break;
    }
  }
  // A task is due once a second, so its last time is within a second before the deadline.
  for (const key of cursors.keys()) cursors.set(key, deadline - 1_000);
  // Jobs whose worker died return a few per second: progress counts.
  let [fewest, since] = [Number.POSITIVE_INFINITY, performance.now()];
  while (fewest > 0 && performance.now() - since < PATIENCE) {
    await pause(500);
    tally.tidy();
    const missing = tally.gaps(cursors).length;
    if (missing >= fewest) continue;
    [fewest, since] = [missing, performance.now()];
  }
  await pause(2_000);
  return cursors;
}

function grown({ early, late }) {
  return late > early * GROWTH + SLACK;
}

function reasons(report) {
  const grew = Object.entries(report.trends).filter(([, trend]) => grown(trend));
  return [
    ...["duplicates", "gaps"]
      .filter((name) => report[name].length > 0)
      .map((name) => `${report[name].length} ${name}`),
    ...grew.map(([name, { early, late }]) => `${name} grew from ${early} to ${late}`),
    ...report.problems,
    ...(report.occurrences === 0 ? ["nothing was worked: this run proves nothing"] : []),
    ...(report.effectiveFaults === 0 ? ["no fault was effective: this run proves nothing"] : []),
  ];
}

function print(report) {
  const { seed, minutes, nodes, rate, occurrences, faults, effectiveFaults, duplicates, gaps } = report;
  console.log(
    `seed ${seed}, ${nodes} nodes, ${minutes} minutes, ${rate} a second: ${occurrences} occurrences worked`,
  );
  console.log(
    `${faults} faults, ${effectiveFaults} effective; ${duplicates.length} duplicates, ${gaps.length} gaps`,
  );
  for (const text of duplicates.slice(0, 10)) console.log(`  twice: ${text}`);
  for (const text of gaps.slice(0, 10)) console.log(`  never: ${text}`);
  for (const [name, { early, late }] of Object.entries(report.trends)) {
    console.log(`${name}: ${early} in the second quarter, ${late} in the last`);
  }
  const failed = reasons(report);
  console.log(
    failed.length === 0 ? "nothing lost, nothing twice, nothing grew" : `FAILED: ${failed.join("; ")}`,
  );
}
