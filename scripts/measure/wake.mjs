// Lateness of an unloaded node: tasks put 2 s ahead while nothing else is due for an hour. `--mute`: the nodes may not
// subscribe, so they find the task at their next re-read.
import { parseArgs } from "node:util";
import { bullPrefix, Client } from "@carillon/sdk";
import { startRedis } from "@carillon/testing";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause, percentile } from "./nodes.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    nodes: { type: "string", default: "3" },
    mute: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const redis = await startRedis({ appendonly: true });
const admin = new Redis(redis.url, { maxRetriesPerRequest: null });
const url = new URL(redis.url);
if (values.mute) {
  await admin.call("ACL", "SETUSER", "mute", "on", ">mute", "~*", "+@all", "resetchannels");
  url.username = "mute";
  url.password = "mute";
}
const namespace = "wake";
const env = { REDIS_URL: url.toString(), CARILLON_NAMESPACE: namespace, CARILLON_LOG_LEVEL: "info" };
const nodes = Array.from({ length: Number(values.nodes) }, (_, i) => new Node(`n${i}`, env));
await Promise.all(nodes.map((node) => node.running));
const client = new Client({ connection: redis.url, namespace });
const put = (id, at) => client.put({ id, type: "noop", queue: "q", schedule: { at }, overlap: "allow" });
await put("in-an-hour", Date.now() + 3_600_000);

const queue = new Queue("q", { connection: admin, prefix: bullPrefix(namespace, "q") });
const rounds = Number(values.rounds);
for (let round = 0; round < rounds; round++) {
  await put(`t${round}`, (await client.serverTime()) + 2_000);
  await pause(values.mute ? 200 : 2_300);
}
for (let found = 0; found < rounds; ) {
  await pause(200);
  found = await queue.getWaitingCount();
}
const jobs = await queue.getJobs(["wait"]);
const late = jobs.map(({ data }) => data.occurrence.enqueued - data.occurrence.due);
const report = {
  rounds,
  nodes: nodes.length,
  messages: !values.mute,
  lateMs: { median: percentile(late, 0.5), max: Math.max(...late) },
};
console.log(values.json ? JSON.stringify(report) : report);
await queue.close();
admin.disconnect();
await client.close();
await Promise.all(nodes.map((node) => node.stop()));
await redis.stop();
process.exit((values.mute ? report.lateMs.max <= 30_500 : report.lateMs.median <= 50) ? 0 : 1);
