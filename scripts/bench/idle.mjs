// Cost of idle nodes: commands that Redis counts, including calls in Lua, by second and node; and the additional cost
// of each queue.
import { Client } from "@carillon/sdk";
import { Node, pause } from "../lib/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({
  tasks: [100_000, 500],
  nodes: 3,
  seconds: [600, 3],
  warmup: [120, 1],
  queues: 10,
});
const TASKS = options.tasks;
const SECONDS = options.seconds;
const WARMUP = options.warmup;
const namespace = "idle";

/** Starts nodes with this number of queues, which share the tasks. Two servers are measured at the same time. */
async function start(queues) {
  const server = await startServer();
  const client = new Client({ connection: server.url, namespace });
  const at = new Date((await server.time()) + 7_200_000).toISOString();
  for (let from = 0; from < TASKS; from += 10_000) {
    await client.putMany(
      Array.from({ length: Math.min(10_000, TASKS - from) }, (_, i) => ({
        id: `t${from + i}`,
        type: "noop",
        queue: `q${(from + i) % queues}`,
        schedule: { at },
      })),
    );
  }
  await client.close();
  const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace };
  const nodes = Array.from({ length: options.nodes }, (_, i) => new Node(`node-${i}`, env));
  await Promise.all(nodes.map((node) => node.running));
  return { server, nodes, queues };
}

const sites = [await start(1), await start(options.queues)];
await pause(WARMUP * 1000);
const count = () => Promise.all(sites.map(({ server }) => server.calls()));
const before = await count();
await pause(SECONDS * 1000);
const after = await count();
const costs = sites.map(({ nodes }, s) => {
  const rows = [...after[s]]
    .map(([name, calls]) => [name, calls - (before[s].get(name) ?? 0)])
    .filter(([name, calls]) => calls > 0 && name !== "info")
    .sort((a, b) => b[1] - a[1]);
  const total = rows.reduce((sum, [, calls]) => sum + calls, 0);
  return { perSecondAndNode: total / SECONDS / nodes.length, rows };
});
const [one, many] = costs;
const further = (many.perSecondAndNode - one.perSecondAndNode) / (sites[1].queues - 1);
print(
  {
    bench: "idle",
    smoke: options.smoke,
    redis: await sites[0].server.version(),
    targets: [
      target("commands a second and node, one queue", one.perSecondAndNode, "<=", 0.5),
      target("more for each further queue", further, "<=", 0.1),
    ],
    seen: { tasks: TASKS, seconds: SECONDS, commands: Object.fromEntries(one.rows) },
  },
  options.json,
);
for (const { server, nodes } of sites) {
  await Promise.all(nodes.map((node) => node.stop()));
  await server.stop();
}
