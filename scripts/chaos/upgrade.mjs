// npm run chaos:upgrade: a fleet of an old version becomes one of a next version, and goes back, one process after the other, under load. Then all
// occurrences must have run once, and nothing of a newer format on an older version. A control has an old version that does not check the
// format; it must fail. The old version is this checkout. With --from it is a packed one: a published version, or the folder of its tarballs.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { main, say, Trouble } from "../lib/project.mjs";
import { setUp } from "../lib/setup.mjs";
import { copyVersion, installVersion, runDir } from "./versions.mjs";

const CONTROL = "control without a check of the format";
const TASKS = 20;
/** In ms: between two replacements. Tasks are due each second. */
const STEP = 3_000;
/** @type {[RegExp, string]} a run that was handed back is tried again after a second, instead of half a minute */
const SOON = [/newerWait: [\d_]+/, "newerWait: 1_000"];
/** @type {[RegExp, string]} the next format of runs */
const BUMP = [/runFormat: 1/, "runFormat: 2"];
/** Handed-back runs are many, and logged. */
const logger = { debug() {}, info() {}, warn() {}, error() {}, fatal() {} };
const PATIENCE = { timeoutMs: 120_000, intervalMs: 500 };

await main(async () => {
  const { values } = parseArgs({ options: { from: { type: "string" } } });
  await setUp();
  const { startRedis, eventually } = await import("@carillon/testing"); // exists once it is built
  const dir = runDir();
  const from = values.from === undefined ? undefined : await installVersion(dir, values.from);
  /**
   * A copy in which runs are handed back for a shorter time.
   * @param {string} name
   * @param {{ from?: string | undefined, bumped?: boolean, changes?: [RegExp, string][], lua?: Record<string, [RegExp, string][]> }} [how]
   */
  const make = (name, { changes = [], lua = {}, ...how } = {}) =>
    load(
      copyVersion(dir, name, {
        ...how,
        changes: { "store/dist/script/facts.js": [SOON, ...changes], ...lua },
      }),
    );
  const old = await make("old", { from });
  /** @type {Record<string, [RegExp, string][]>} */
  const blind = { "store/lua/texts.js": [[/return tonumber\(v or 1\) > F\.runFormat/g, "return false"]] };
  const newer = { ...(await make("newer", { bumped: true, changes: [BUMP] })), newer: true };
  const fleets = {
    ...(from && { [`${values.from} and this checkout`]: [old, await make("checkout")] }),
    "upgrade to newer formats": [old, newer],
    [CONTROL]: [await make("blind", { from, lua: blind }), newer],
  };

  let failures = 0;
  for (const [name, [before, next]] of Object.entries(fleets)) {
    const redis = await startRedis({ appendonly: true });
    try {
      const { runs, violations } = await upgrade({ old: before, next, url: redis.url, eventually });
      say([`${name}: ${runs} runs, ${violations.length} violations`, ...violations.slice(0, 5)].join("\n  "));
      if (violations.length > 0 !== (name === CONTROL)) failures += 1;
    } finally {
      await redis.stop();
    }
  }
  return failures === 0 ? 0 : 1;
});

/** The packages of a version. */
async function load(folder) {
  const of = (name) =>
    import(pathToFileURL(join(folder, `node_modules/@carillon/${name}/dist/index.js`)).href);
  return { name: folder, ...(await of("sdk")), Scheduler: (await of("scheduler")).Scheduler };
}

async function upgrade({ old, next, url, eventually }) {
  const shared = { connection: url, namespace: "upgrade" };
  const starts = [];
  const startNode = async ({ Scheduler }, n) => {
    const node = new Scheduler({ ...shared, nodeId: `n${n}`, logger });
    node.on("error", () => {});
    await node.start();
    return node;
  };
  const startWorker = async (version) => {
    const job = version.defineTask("job", {
      queue: "jobs",
      handler(_payload, { occurrence: { task, nominal }, idempotencyKey: key }) {
        starts.push({ task, nominal, key, by: version.name });
      },
    });
    const worker = new version.Worker({ ...shared, types: [job], concurrency: 20, logger });
    worker.on("error", () => {});
    await worker.start();
    return worker;
  };
  const start = { node: startNode, worker: startWorker };
  const fleet = new Map();
  let started = 0;
  /** Replaces one process: the new one works before the old one stops. */
  const replace = async (name, version) => {
    const before = fleet.get(name);
    fleet.set(name, await start[name.split(" ")[0]](version, started++));
    await before?.stop({ within: 5_000 });
    await new Promise((resolve) => setTimeout(resolve, STEP));
  };
  const names = ["node 1", "node 2", "worker 1", "worker 2"];
  const clients = [old, next].map(({ Client }) => new Client(shared));
  const tasks = { old: [], next: [] };
  const put = async (client, whose) => {
    for (let i = 0; i < TASKS; i++) {
      const policies = { overlap: "allow", catchUp: "all", retention: { successes: 10_000 } };
      tasks[whose].push(`${whose}-${i}`);
      await client.put({
        id: `${whose}-${i}`,
        type: "job",
        queue: "jobs",
        payload: {},
        schedule: { every: "1s" },
        ...policies,
      });
    }
  };
  try {
    for (const name of names) fleet.set(name, await start[name.split(" ")[0]](old, started++));
    await put(clients[0], "old");
    await new Promise((resolve) => setTimeout(resolve, STEP));
    for (const name of names) {
      await replace(name, next);
      if (name === "node 2") await put(clients[1], "next"); // while all workers are old
    }
    for (const name of names.toReversed()) await replace(name, old);
    for (const name of names) await replace(name, next);

    const all = [...tasks.old, ...tasks.next];
    // Due times are claimed before the pause, so that the last time of each task can be read.
    for (const id of all) await clients[1].pause(id);
    const open = async () => {
      const stats = await Promise.all(all.map((id) => clients[1].runs.stats(id)));
      const sum = stats.reduce((n, one) => n + one.open, 0);
      if (sum > 0) throw new Trouble(`${sum} runs are open`);
      return new Map(all.map((id, n) => [id, stats[n]]));
    };
    const stats = await eventually(open, PATIENCE);
    return { runs: starts.length, violations: violationsOf(starts, stats, next) };
  } finally {
    await Promise.all([...fleet.values()].map((one) => one.stop({ within: 1_000 })));
    await Promise.all(clients.map((client) => client.close()));
  }
}

/** Occurrences that are missing or doubled, miscounted tasks, and runs of a newer format that an older worker has started. */
function violationsOf(starts, stats, next) {
  return [...stats].flatMap(([id, { successes, runs }]) => {
    const own = starts.filter(({ task }) => task === id);
    const times = [...new Set(own.map(({ nominal }) => nominal))].sort((a, b) => a - b);
    const gaps = times.filter((time, i) => i > 0 && time - times[i - 1] !== 1_000);
    const foreign = next.newer && id.startsWith("next") ? own.filter(({ by }) => by !== next.name) : [];
    return [
      ...(own.length === 0 ? [`${id} never ran`] : []),
      ...(own.length > times.length ? [`${id}: ${own.length} starts of ${times.length} occurrences`] : []),
      ...gaps.map((time) => `${id}: a time before ${new Date(time).toISOString()} is missing`),
      ...(successes === times.length && runs === times.length
        ? []
        : [`${id}: ${times.length} occurrences ran, and ${successes} of ${runs} runs are counted`]),
      ...(foreign.length > 0
        ? [`${id}: older workers started ${foreign.length} runs of the next version`]
        : []),
    ];
  });
}
