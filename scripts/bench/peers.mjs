// The same tasks, all due at each full second, on three replicas each: Carillon and its alternatives. Measures how many
// occurrences began once, twice or never, how late they began, and the cost for Redis. Each has its own Redis, one
// after the other.
import { readOptions } from "./lib/options.mjs";
import { count, startOurs, startPeer, startTheirs, watch } from "./lib/pulse.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions(
  { ...{ tasks: [200, 20], seconds: [20, 2] }, ...{ warmup: [5, 2], replicas: [3, 2] } },
  ["only"],
);
const TASKS = options.tasks;
const SECONDS = options.seconds;
const WARMUP = options.warmup;
const REPLICAS = options.replicas;
const EACH_SECOND = "* * * * * *";
let redis;

/** BullMQ's side and ours also have workers: as many processes as there are replicas. */
const size = { nodes: REPLICAS, workers: REPLICAS, tasks: TASKS };
const schedule = () => ({ cron: EACH_SECOND, timezone: "UTC" });
const peer = (name) => (server) => startPeer(server, name, { replicas: REPLICAS, tasks: TASKS });
const PEERS = {
  Carillon: (server) => startOurs(server, { ...size, schedule }),
  "Carillon, plain workers": (server) => startOurs(server, { ...size, plain: true, schedule }),
  "BullMQ Job Schedulers": (server) =>
    startTheirs(server, { ...size, repeat: () => ({ pattern: EACH_SECOND }) }),
  "Agenda, Redis backend": peer("agenda"),
  "node-cron, Redis lock": peer("node-cron"),
  "croner, Redis lock": peer("croner"),
};
const NOT_RUN = {
  "pg-boss": "a schedule of its sends at most one job a minute, whatever its cron says",
  "Agenda, MongoDB and PostgreSQL backends": "here, everything that is run beside Carillon uses Redis",
};

async function measure(name) {
  const server = await startServer();
  const watched = await PEERS[name](server);
  const { rows, commands, cpu, workers, nodes } = await watch(server, watched, {
    rate: TASKS,
    warmup: WARMUP,
    seconds: SECONDS,
  });
  redis = await server.version();
  await server.stop();
  const { once, doubled, missed } = count(rows, TASKS * SECONDS);
  const came = Math.max(1, once + doubled);
  const late = rows.map(([due, started]) => started - due);
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(late, share));
  return {
    scheduler: name,
    once,
    doubled,
    missed,
    "start p50 ms": p50,
    "p99 ms": p99,
    commands: commands / came,
    "Redis CPU us": (1e6 * cpu) / came,
    "workers us": (1e6 * workers) / came,
    "nodes us": (1e6 * nodes) / came,
  };
}

const chosen = Object.keys(PEERS).filter((name) => name.includes(options.only ?? ""));
if (chosen.length === 0)
  throw new Error(`--only: none of ${Object.keys(PEERS).join("; ")} has that in its name.`);
const table = [];
for (const name of chosen) table.push(await measure(name));
const [first] = table;
print(
  {
    bench: "peers",
    smoke: options.smoke,
    redis,
    targets: [
      target(`${first.scheduler}: share that began exactly once`, first.once / (TASKS * SECONDS), ">=", 1),
    ],
    seen: {
      "occurrences of each": TASKS * SECONDS,
      "replicas of each": REPLICAS,
      "commands and Redis CPU": "of an occurrence, calls inside scripts included",
      ...Object.fromEntries(Object.entries(NOT_RUN).map(([name, why]) => [`not run: ${name}`, why])),
    },
    table,
  },
  options.json,
);
