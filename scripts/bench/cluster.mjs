// The same occurrences, due at one instant on six queues: on a cluster of three masters, with two queues each, and on
// one server. The machine does not grow with the masters, so the evenness of the load and the cost of an occurrence
// matter, not only the rate. Rounds alternate; both sites stay up.
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause } from "../lib/nodes.mjs";
import { writeChart } from "./lib/chart.mjs";
import { readOptions } from "./lib/options.mjs";
import { processCpu } from "./lib/process-cpu.mjs";
import { median, print, target } from "./lib/report.mjs";
import { startMasters, startServer } from "./lib/server.mjs";

const options = readOptions({ tasks: [12_000, 600], masters: 3, nodes: 3, rounds: [5, 1] }, ["chart"]);
const TASKS = options.tasks;
const MASTERS = options.masters;
const ROUNDS = options.rounds;
const QUEUES = 6;
const namespace = "cluster";

/** Finds this many queue names for each master. */
async function queueNames(cluster) {
  const names = Array.from({ length: MASTERS }, () => []);
  const wanted = QUEUES / MASTERS;
  for (let i = 0; names.flat().length < QUEUES; i++) {
    const name = `q${i}`;
    const there = names[await cluster.indexOf(bullPrefix(namespace, name))];
    if (there.length < wanted) there.push(name);
  }
  return names;
}

/** @param {string[][]} names by master */
async function startSite(url, masters, names) {
  const env = { REDIS_URL: url, CARILLON_NAMESPACE: namespace };
  const nodes = Array.from({ length: options.nodes }, (_, i) => new Node(`node-${i}`, env));
  await Promise.all(nodes.map((node) => node.running));
  const client = new Client({ connection: url, namespace });
  const connections = masters.map((master) => new Redis(master.url, { maxRetriesPerRequest: null }));
  const queues = names.flatMap((those, m) =>
    those.map((name) => new Queue(name, { connection: connections[m], prefix: bullPrefix(namespace, name) })),
  );
  await Promise.all(queues.map((queue) => queue.waitUntilReady()));
  const stop = async () => {
    await client.close();
    await Promise.all(queues.map((queue) => queue.close()));
    for (const connection of connections) connection.disconnect();
    await Promise.all(nodes.map((node) => node.stop()));
  };
  return { masters, nodes, client, queues, stop };
}

const usage = async ({ masters, nodes }) => ({
  masters: await Promise.all(masters.map((master) => master.cpu())),
  nodes: nodes.map(({ child }) => processCpu(child.pid)),
});
const less = (after, before) => after.map((value, i) => value - before[i]);

/** @param seconds for the put; on a busy machine, twice as many */
async function round(site, seconds = TASKS / 8_000 + 1.5) {
  const { masters, client, queues } = site;
  const instant = Math.ceil(((await masters[0].time()) + seconds * 1000) / 1000) * 1000;
  await client.putMany(
    Array.from({ length: TASKS }, (_, i) => ({
      id: `report-${i}`,
      owner: `team-${i % 20}`,
      type: "report",
      queue: queues[i % QUEUES].name,
      schedule: { every: "1h", origin: new Date(instant).toISOString() },
      payload: { customer: i, format: "pdf" },
    })),
  );
  const ahead = instant - (await masters[0].time());
  if (ahead < 1_000) {
    await clear(site);
    return round(site, 2 * seconds);
  }
  // Work of nodes ahead of the instant counts as well.
  await pause(ahead - 700);
  const before = await usage(site);
  const waiting = () => Promise.all(queues.map((queue) => queue.getWaitingCount()));
  for (let found = 0; found < TASKS; found = sum(await waiting())) await pause(100);
  const after = await usage(site);
  const jobs = (await Promise.all(queues.map((queue) => queue.getJobs(["wait"], 0, -1)))).flat();
  const commits = jobs.map(({ data }) => data.occurrence.enqueued);
  await clear(site);
  return {
    came: new Set(jobs.map(({ data }) => data.occurrence.key)).size,
    ms: Math.max(...commits) - instant,
    masters: less(after.masters, before.masters),
    nodes: less(after.nodes, before.nodes),
  };
}

const clear = ({ masters }) => Promise.all(masters.map((master) => master.clear()));
const sum = (values) => values.reduce((total, value) => total + value, 0);

const server = await startServer();
const cluster = await startMasters(MASTERS);
const names = await queueNames(cluster);
const single = await startSite(server.url, [server], [names.flat()]);
const several = await startSite(cluster.url, cluster.masters, names);
const rounds = [];
for (let i = -1; i < ROUNDS; i++) {
  const pair = { one: await round(single), many: await round(several) };
  // The first round warms both up.
  if (i >= 0) rounds.push(pair);
}

const of = (side, pick) => median(rounds.map((pair) => pick(pair[side])));
const row = (site, side) => ({
  site,
  "a second": of(side, ({ ms }) => (1000 * TASKS) / ms),
  "Redis CPU us": of(side, ({ masters }) => (1e6 * sum(masters)) / TASKS),
  "nodes CPU us": of(side, ({ nodes }) => (1e6 * sum(nodes)) / TASKS),
  "CPU s of each master": rounds[0][side].masters
    .map((_, m) => of(side, ({ masters }) => masters[m]).toFixed(3))
    .join(" "),
  "CPU s of each node": rounds[0][side].nodes
    .map((_, n) => of(side, ({ nodes }) => nodes[n]).toFixed(2))
    .join(" "),
});
const busiest = of("many", ({ masters }) => Math.max(...masters) / sum(masters));
print(
  {
    bench: "cluster",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target("share of the occurrences that came, least of all rounds", leastShare(), ">=", 1),
      target("busiest master's share of the CPU of all, times an even share", busiest * MASTERS, "<=", 1.25),
    ],
    seen: {
      "occurrences, queues": `${TASKS}, ${QUEUES}`,
      "queues of each master": names.map((those) => those.join(" ")).join(", "),
      "occurrences a second, times one server's": median(rounds.map(({ one, many }) => one.ms / many.ms)),
      "Redis CPU of an occurrence, times one server's": median(
        rounds.map(({ one, many }) => sum(many.masters) / sum(one.masters)),
      ),
    },
    table: [row("1 server", "one"), row(`${MASTERS} masters`, "many")],
  },
  options.json,
);
if (options.chart) {
  writeChart(options.chart, `${TASKS.toLocaleString("en-US")} at one instant, 6 queues: a second`, [
    { label: `Carillon, ${MASTERS} masters`, value: of("many", ({ ms }) => (1000 * TASKS) / ms), ours: true },
    { label: "Carillon, 1 server", value: of("one", ({ ms }) => (1000 * TASKS) / ms), ours: true },
  ]);
}
await Promise.all([single.stop(), several.stop()]);
await Promise.all([server.stop(), cluster.stop()]);

function leastShare() {
  return Math.min(...rounds.flatMap(({ one, many }) => [one.came, many.came])) / TASKS;
}
