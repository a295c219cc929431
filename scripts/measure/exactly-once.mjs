// Exactly once, seen from outside: replicas as processes, killed with -9 and restarted at random; then the queue's jobs
// alone are checked. `--sabotage mutex` must still hold, `--sabotage mutex,fence` must fail.
import { parseArgs } from "node:util";
import { bullPrefix, Client } from "@carillon/sdk";
import { checkOccurrences, startCluster, startRedis } from "@carillon/testing";
import { Queue } from "bullmq";
import { Cluster, Redis } from "ioredis";
import { carillon, Node, pause, random } from "./nodes.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    nodes: { type: "string", default: "5" },
    tasks: { type: "string", default: "60" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    sabotage: { type: "string", default: "" },
    cluster: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const dice = random(Number(values.seed));
const namespace = "once";
const cluster = values.cluster ? await startCluster({ masters: 3 }) : undefined;
const server = cluster ?? (await startRedis({ appendonly: true }));
const { url } = server;
const env = {
  REDIS_URL: url,
  CARILLON_NAMESPACE: namespace,
  CARILLON_UNSAFE_REDIS: "warn",
  CARILLON_LOG_LEVEL: "warn",
  ...(values.sabotage ? { CARILLON_TEST_ONLY_SABOTAGE: values.sabotage } : {}),
};

const tasks = Array.from({ length: Number(values.tasks) }, (_, i) => ({
  id: `t${i}`,
  type: "noop",
  queue: "bar",
  schedule: { every: "1s" },
  overlap: "allow",
  catchUp: "all",
  payload: {},
}));
await carillon(["put", "--batch"], env, tasks.map((task) => JSON.stringify(task)).join("\n"));
const nodes = Array.from({ length: Number(values.nodes) }, (_, i) => new Node(`n${i}`, env));

let kills = 0;
const end = Date.now() + Number(values.seconds) * 1000;
while (Date.now() < end) {
  await pause(200 + dice() * 600);
  const victim = nodes[Math.floor(dice() * nodes.length)];
  await victim.kill();
  kills += 1;
  await pause(dice() * 500);
  victim.start();
}

// Lets the survivors catch up, then stops them; everything due by then must be enqueued.
const client = new Client({ connection: url, namespace });
const deadline = await client.serverTime();
for (let open = tasks.length; open > 0; ) {
  await pause(200);
  const page = await client.list({ limit: 1000 });
  open = page.tasks.filter((task) => (task.due ?? Number.POSITIVE_INFINITY) <= deadline).length;
}
await Promise.all(nodes.map((node) => node.stop()));

const connection = cluster
  ? new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
  : new Redis(url, { maxRetriesPerRequest: null });
const queue = new Queue("bar", { connection, prefix: bullPrefix(namespace, "bar") });
const jobs = await queue.getJobs(["wait"], 0, -1);
const { duplicates, gaps, early } = checkOccurrences(jobs, () => ({ every: "1s" }));
const report = {
  seed: Number(values.seed),
  topology: values.cluster ? "cluster" : "single",
  sabotage: values.sabotage || "none",
  kills,
  occurrences: jobs.length,
  duplicates: duplicates.length,
  gaps: gaps.length,
  early: early.length,
};
console.log(values.json ? JSON.stringify(report) : report);
await queue.close();
connection.disconnect();
await client.close();
await server.stop();
process.exit(report.duplicates + report.gaps + report.early > 0 || report.occurrences === 0 ? 1 : 0);
