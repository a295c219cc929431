// Schedules as code: time of a plan and of an apply, for sets of two sizes, with the memory that they take.
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { readOptions } from "./lib/options.mjs";
import { print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const options = readOptions({ few: [5_000, 200], tasks: [100_000, 1_000] });
const server = await startServer();
const rows = [];
for (const count of [options.few, options.tasks]) {
  const client = new Client({ connection: server.url, namespace: `plan-${count}` });
  const { sets } = operatorOf(client);
  const set = { set: "bench", tasks: Array.from({ length: count }, (_, i) => task(i)) };
  const changed = { ...set, tasks: set.tasks.map((one, i) => (i % 10 ? one : { ...one, priority: 1 })) };
  const row = { tasks: count };
  for (const [name, act] of Object.entries({
    "plan, new": () => sets.plan(set),
    "apply, new": () => sets.apply(set),
    "plan, unchanged": () => sets.plan(set),
    "apply, unchanged": () => sets.apply(set),
    "plan, a tenth changed": () => sets.plan(changed),
  })) {
    const { s, cpu, mb } = await measured(act);
    Object.assign(row, { [`${name}, s`]: s, [`${name}, CPU s`]: cpu, [`${name}, MB`]: mb });
  }
  rows.push(row);
  await client.close();
}

/** One of many tenants' tasks: hundreds share a schedule. */
function task(n) {
  return {
    id: `task-${n}`,
    owner: `tenant-${n % 500}`,
    type: "mail",
    queue: ["mail", "reports", "sync"][n % 3],
    schedule: { cron: `${n % 60} ${n % 24} * * *`, timezone: "Europe/Berlin" },
    tags: ["plan"],
    payload: { customer: n, format: "pdf" },
    retry: { attempts: 3, delay: "1m" },
  };
}

/** Seconds, CPU seconds of this process, and the most megabytes that it grew by. */
async function measured(act) {
  globalThis.gc?.();
  const [begin, cpu, rss] = [performance.now(), process.cpuUsage(), process.memoryUsage.rss()];
  let most = rss;
  const look = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 20);
  await act();
  clearInterval(look);
  const { user, system } = process.cpuUsage(cpu);
  most = Math.max(most, process.memoryUsage.rss());
  return {
    s: (performance.now() - begin) / 1_000,
    cpu: (user + system) / 1e6,
    mb: (most - rss) / 2 ** 20,
  };
}

const slowest = (row) =>
  Math.max(
    ...Object.keys(row).flatMap((key) => (/^plan.* s$/.test(key) && !key.includes("CPU") ? row[key] : [])),
  );
const [few, many] = rows;
print(
  {
    bench: "plan",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      target("plan of 5,000 tasks, s", slowest(few), "<=", 2),
      target("plan of 100,000 tasks, s", slowest(many), "<=", 20),
      target(
        "memory of a plan of 100,000 tasks, MB",
        Math.max(many["plan, new, MB"], many["plan, unchanged, MB"]),
        "<=",
        500,
      ),
    ],
    table: Object.keys(few)
      .slice(1)
      .map((what) => ({ what, [few.tasks]: few[what], [many.tasks]: many[what] })),
  },
  options.json,
);
await server.stop();
