// One task becomes due, with three nodes and a link of 2 ms: round trips to Redis of the node that claims it, cost of
// the other nodes, and lateness of the commit. Counted from MONITOR, by connection.
import { bullPrefix, Client } from "@carillon/sdk";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { Node, pause } from "../lib/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { median, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";
import { slowLink } from "./lib/slow-link.mjs";

const options = readOptions({ rounds: [20, 2], nodes: 3 });
const ROUNDS = options.rounds;
const namespace = "trips";
const server = await startServer();
const link = await slowLink(server.url, 1);
const env = { REDIS_URL: link.url, CARILLON_NAMESPACE: namespace };
const nodes = Array.from({ length: options.nodes }, (_, i) => new Node(`node-${i}`, env));
await Promise.all(nodes.map((node) => node.running));
const client = new Client({ connection: server.url, namespace });
const connection = new Redis(server.url, { maxRetriesPerRequest: null });
const queue = new Queue("q", { connection, prefix: bullPrefix(namespace, "q") });
await queue.waitUntilReady();
// Waits until no other replies are due: a reply together with that of MONITOR confuses the client.
await pause(500);
const monitor = await new Redis(server.url).monitor();
let log = [];
// Commands of scripts have the source "lua"; those that nodes send have an address.
monitor.on("monitor", (time, args, source) => {
  const command = args[0].toLowerCase();
  if (source !== "lua" && !["info", "client", "hset"].includes(command))
    log.push({ source, command, at: Number(time) });
});

/** Commands that a client sends together count as one trip: they are at most this far apart, in seconds. */
const TOGETHER = 0.0005;
const trips = (entries) => entries.filter(({ at }, i) => i === 0 || at - entries[i - 1].at > TOGETHER).length;

const rounds = [];
for (let round = -1; round < ROUNDS; round++) {
  const id = `t${round + 1}`;
  await client.put({
    id,
    type: "noop",
    queue: "q",
    schedule: { at: Math.ceil(await server.time()) + 800 },
    overlap: "allow",
  });
  await pause(500);
  log = [];
  await pause(700);
  const seen = log;
  log = [];
  const jobs = await queue.getJobs(["wait"]);
  const { due, enqueued } = jobs.map(({ data }) => data.occurrence).find(({ task }) => task === id);
  // Otherwise its run would be reconciled during a later measurement.
  await client.delete({ queue: "q", id });
  const bySource = group(seen);
  const each = [...bySource.values()].map((entries) => ({
    entries,
    scripts: entries.filter(({ command }) => command.startsWith("eval")).length,
  }));
  // The winner locks, reads, commits and releases, so it ran the most scripts.
  each.sort((a, b) => b.scripts - a.scripts);
  const [winner, ...losers] = each;
  if (round >= 0) {
    rounds.push({
      winner: trips(winner.entries),
      commands: winner.entries.map(({ command }) => command).join(" "),
      losers: losers.reduce((sum, { entries }) => sum + trips(entries), 0) / Math.max(1, losers.length),
      late: enqueued - due,
    });
  }
}

function group(entries) {
  const groups = new Map();
  for (const entry of entries) groups.set(entry.source, [...(groups.get(entry.source) ?? []), entry]);
  return groups;
}

print(
  {
    bench: "trips",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target("round trips of a claim", median(rounds.map(({ winner }) => winner)), "<=", 4),
      target(
        "round trips of each node that was not first",
        median(rounds.map(({ losers }) => losers)),
        "<=",
        3,
      ),
    ],
    seen: {
      "commands of a claim": rounds.at(-1)?.commands ?? "",
      "due to commit over a link of 2 ms, ms": rounds.map(({ late }) => late).join(" "),
    },
  },
  options.json,
);
monitor.disconnect();
await queue.close();
connection.disconnect();
await client.close();
await Promise.all(nodes.map((node) => node.stop()));
link.stop();
await server.stop();
process.exit(0);
