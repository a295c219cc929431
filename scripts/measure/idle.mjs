// Cost of idle nodes: commands that Redis counts, including calls in Lua, by second and node.
import { parseArgs } from "node:util";
import { startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { carillon, Node, pause } from "./nodes.mjs";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "300" },
    warmup: { type: "string", default: "40" },
    nodes: { type: "string", default: "3" },
    tasks: { type: "string", default: "1000" },
    json: { type: "boolean", default: false },
  },
});
const redis = await startRedis({ appendonly: true });
const env = { REDIS_URL: redis.url, CARILLON_NAMESPACE: "idle", CARILLON_LOG_LEVEL: "info" };
const at = new Date(Date.now() + 3_600_000).toISOString();
const tasks = Array.from({ length: Number(values.tasks) }, (_, i) => ({
  id: `t${i}`,
  type: "noop",
  queue: "q",
  schedule: { at },
}));
await carillon(["put", "--batch"], env, tasks.map((task) => JSON.stringify(task)).join("\n"));
const nodes = Array.from({ length: Number(values.nodes) }, (_, i) => new Node(`n${i}`, env));
await Promise.all(nodes.map((node) => node.running));
await pause(Number(values.warmup) * 1000);

const client = new Redis(redis.url);
const stats = async () => {
  const text = await client.info("commandstats");
  const counts = new Map();
  for (const [, name, calls] of text.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)) counts.set(name, Number(calls));
  return counts;
};
const before = await stats();
await pause(Number(values.seconds) * 1000);
const after = await stats();
const rows = [...after]
  .map(([name, calls]) => [name, calls - (before.get(name) ?? 0)])
  .filter(([name, calls]) => calls > 0 && name !== "info")
  .sort((a, b) => b[1] - a[1]);
const total = rows.reduce((sum, [, calls]) => sum + calls, 0);
const perSecondAndNode = total / Number(values.seconds) / nodes.length;
const report = {
  seconds: Number(values.seconds),
  nodes: nodes.length,
  tasks: tasks.length,
  commands: Object.fromEntries(rows),
  perSecondAndNode: Number(perSecondAndNode.toFixed(3)),
};
console.log(values.json ? JSON.stringify(report) : report);
client.disconnect();
await Promise.all(nodes.map((node) => node.stop()));
await redis.stop();
process.exit(perSecondAndNode < 1 ? 0 : 1);
