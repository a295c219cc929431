// The console with 100,000 tasks: time, CPU and Redis commands of each question of its pages, time until the board is shown,
// cost of 200 browsers that follow events for Redis and a node, and memory of the process with 50 viewers.
import { spawn } from "node:child_process";
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { z } from "zod";
import { chromiumBinary } from "../lib/chromium.mjs";
import { Node, pause } from "../lib/nodes.mjs";
import { readOptions } from "./lib/options.mjs";
import { processCpu } from "./lib/process-cpu.mjs";
import { percentile, print, target } from "./lib/report.mjs";
import { startServer } from "./lib/server.mjs";

const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {} };
const options = readOptions({
  tasks: [100_000, 2_000],
  calls: [200, 5],
  viewers: [50, 5],
  listeners: [200, 10],
  seconds: [20, 2],
  pages: [5, 1],
});
const MAIN = fileURLToPath(new URL("../../apps/console/bin/carillon-console.js", import.meta.url));
const TOKEN = "the-token-of-this-bench";
/** Time in ms for which the console reads events after the last listener has left. */
const LINGER = 35_000;
const QUEUES = ["mail", "reports", "sync"];
const namespace = "console-bench";
const server = await startServer();
const env = { REDIS_URL: server.url, CARILLON_NAMESPACE: namespace };
const client = new Client({ connection: server.url, namespace });

await putTasks();
const busy = await ranTasks();
const web = await startConsole();
const firstPage = await browserTimes();
const times = await callTimes();
const events = await listenerCost();
const memory = await viewersMemory();
web.child.kill("SIGTERM");

const api = (name, budget) => target(`${name}, p99 ms`, percentile(times.get(name).ms, 0.99), "<=", budget);
print(
  {
    bench: "console",
    smoke: options.smoke,
    redis: await server.version(),
    targets: [
      ...["list", "search", "ticks"].map((name) => api(name, 50)),
      ...(firstPage.length > 0
        ? [target("board shown, median ms", percentile(firstPage, 0.5), "<=", 1_000)]
        : []),
      target("Redis commands a second for all listeners", events.commands, "<=", 20),
      target("CPU of a node, times that without listeners", events.node, "<=", 1.5),
      target("memory of the console at most, MiB", memory, "<=", 150),
    ],
    seen: { tasks: options.tasks, listeners: options.listeners, viewers: options.viewers },
    table: [...times].map(([name, { ms, cpu, commands }]) => ({
      call: name,
      "p50 ms": percentile(ms, 0.5),
      "p99 ms": percentile(ms, 0.99),
      "most ms": Math.max(...ms),
      "CPU ms": cpu,
      "Redis commands": commands,
    })),
  },
  options.json,
);
await client.close();
await server.stop();

async function putTasks() {
  for (let i = 0; i < options.tasks; i += 10_000) {
    const length = Math.min(10_000, options.tasks - i);
    await client.putMany(Array.from({ length }, (_, n) => taskOf(i + n)));
  }
}

/** One task of a platform with many tenants. */
function taskOf(n) {
  return {
    id: `${["nightly-report", "invoice-run", "sync-contacts", "cleanup"][n % 4]}-${n}`,
    owner: `tenant-${n % 500}`,
    type: ["send-mail", "make-report", "sync", "clean"][n % 4],
    queue: QUEUES[n % 3],
    tags: [`plan-${n % 3}`],
    schedule: { cron: `${n % 60} ${n % 24} * * *` },
    payload: { customer: n },
  };
}

/**
 * Runs tasks, so that they have a history.
 * @returns their names
 */
async function ranTasks() {
  const type = defineTask("quick", { queue: "quick", payload: z.object({}), handler: async () => {} });
  const worker = new Worker({
    connection: server.url,
    namespace,
    types: [type],
    concurrency: 20,
    logger: SILENT,
  });
  const names = Array.from({ length: 50 }, (_, i) => ({ queue: "quick", owner: "busy", id: `task-${i}` }));
  await client.putMany(
    names.map((name) => ({
      ...name,
      type: "quick",
      schedule: { every: "1h" },
      overlap: "allow",
      payload: {},
    })),
  );
  let ended = 0;
  worker.on("settled", () => ended++);
  await worker.start();
  const runs = options.smoke ? 3 : 40;
  for (let n = 0; n < runs; n++) await Promise.all(names.map((name) => client.trigger(name)));
  while (ended < runs * names.length) await pause(100);
  await worker.stop();
  return names;
}

async function startConsole() {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, ...env, CARILLON_CONSOLE_PORT: "0", CARILLON_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const url = await new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const read = JSON.parse(line);
      if (read.url) resolve(read.url);
    });
  });
  return { url, child, pid: child.pid };
}

/** @returns {Promise<{ ms: number, body: any }>} */
async function call(path, maxAge = 0) {
  const begin = performance.now();
  const headers = { authorization: `Bearer ${TOKEN}`, "cache-control": `max-age=${maxAge}` };
  const response = await fetch(`${web.url}/api/v1${path}`, { headers });
  const body = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(body)}`);
  return { ms: performance.now() - begin, body };
}

/** The time of each kind of call, one after the other, and the console's CPU and the Redis commands of one. */
async function callTimes() {
  const pick = (list, i) => list[i % list.length];
  const now = await server.time();
  const [first, next] = [await call("/tasks?limit=100"), await call("/tasks?limit=100&sort=next")];
  const cursors = [first, next].map(({ body }) => encodeURIComponent(body.cursor));
  const lists = [
    "",
    `&cursor=${cursors[0]}`,
    "&sort=next",
    `&sort=next&cursor=${cursors[1]}`,
    "&sort=last",
    "&owner=tenant-77",
    "&queue=sync",
    "&tag=plan-1",
    "&state=scheduled",
    "&neverRan=true",
    "&owner=tenant-77&sort=next",
  ];
  const searches = [
    "nightly",
    "report",
    "tenant-499",
    "cleanup-7",
    "sync-contacts-9",
    `invoice-run-${options.tasks - 1}`,
    "there is no such",
    "q",
  ];
  const strips = Array.from({ length: 50 }, (_, i) => `tasks=quick/busy/task-${i}`).join("&");
  const kinds = {
    list: (i) => `/tasks?limit=100${pick(lists, i)}`,
    search: (i) => `/tasks?limit=100&search=${encodeURIComponent(pick(searches, i))}`,
    ticks: (i) =>
      `/tasks/quick/busy/${pick(busy, i).id}/ticks?from=${Math.floor(now - 3_600_000)}&to=${Math.floor(now + 86_400_000)}`,
    strips: () => `/ticks?limit=30&${strips}`,
    counts: () => "/tasks/counts",
    status: () => "/status",
    upcoming: () => "/upcoming?limit=8",
    changes: () => "/changes?limit=100",
    board: () => boardPath(now),
    load: () => "/load?step=1m",
  };
  const times = new Map();
  for (const [name, path] of Object.entries(kinds)) {
    const calls = name === "load" ? Math.min(5, options.calls) : options.calls;
    for (let i = 0; i < Math.min(20, calls); i++) await call(path(i));
    const ms = [];
    const [before, cpu] = [await server.work(), processCpu(web.pid)];
    for (let i = 0; i < calls; i++) ms.push((await call(path(i))).ms);
    times.set(name, {
      ms,
      cpu: ((processCpu(web.pid) - cpu) * 1_000) / calls,
      commands: ((await server.work()).commands - before.commands) / calls,
    });
  }
  return times;
}

function boardPath(now) {
  const [half, step] = [6 * 3_600_000, 600_000];
  const middle = Math.floor(now / step) * step;
  return `/board?from=${middle - half}&to=${middle + half}&step=${step}`;
}

/** Time from opening the start page until its board is shown, in a browser without cached files. */
async function browserTimes() {
  const binary = await chromiumBinary();
  if (!binary) return [];
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath: binary, args: ["--no-sandbox"] });
  const times = [];
  for (let i = 0; i < options.pages; i++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${web.url}/`);
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".board-row").first().waitFor();
    const cookies = await context.cookies();
    await context.close();
    const fresh = await browser.newContext();
    await fresh.addCookies(cookies);
    const opened = await fresh.newPage();
    const begin = performance.now();
    await opened.goto(`${web.url}/`, { waitUntil: "commit" });
    await opened.locator(".board-row").first().waitFor();
    times.push(performance.now() - begin);
    await fresh.close();
  }
  await browser.close();
  return times;
}

/** Commands of Redis and CPU of a node: without listeners, then with all of them. */
async function listenerCost() {
  const node = new Node("node-1", env);
  await node.running;
  await pause(2_000);
  // The browser has closed, and after a while the reader of its events stops.
  if (!options.smoke) await pause(LINGER);
  const quiet = await cost(node.child?.pid);
  const ends = new AbortController();
  setMaxListeners(0, ends.signal);
  const streams = await Promise.all(
    Array.from({ length: options.listeners }, () =>
      fetch(`${web.url}/api/v1/events`, {
        headers: { authorization: `Bearer ${TOKEN}` },
        signal: ends.signal,
      }),
    ),
  );
  if (!streams.every(({ ok }) => ok)) throw new Error("a stream of events was refused");
  for (const { body } of streams) void body?.pipeTo(new WritableStream()).catch(() => {});
  await pause(2_000);
  const followed = await cost(node.child?.pid);
  ends.abort();
  await node.stop();
  return {
    commands: Math.max(0, followed.commands - quiet.commands),
    // Differences between tiny values are noise, so a small constant is added.
    node: (followed.cpu + 0.01) / (quiet.cpu + 0.01),
  };
}

/** Cost per second. */
async function cost(pid) {
  const [before, cpu] = [await server.work(), processCpu(pid)];
  await pause(options.seconds * 1_000);
  const after = await server.work();
  return {
    commands: (after.commands - before.commands) / options.seconds,
    cpu: (processCpu(pid) - cpu) / options.seconds,
  };
}

/** Most MiB of the console so far, after viewers have asked for some time what the pages ask: each the board, a tenth the timeline. */
async function viewersMemory() {
  const end = Date.now() + options.seconds * 1_000;
  const ask = async (n) => {
    while (Date.now() < end) {
      const paths = ["/status", "/tasks/counts", boardPath(await server.time()), "/changes?limit=100"];
      if (n % 10 === 0) paths.push("/load?step=1m");
      for (const path of [...paths, "/runs/journal?limit=50", "/tasks?limit=100&sort=next"])
        await call(path, path.startsWith("/load") ? 20 : 1);
      await pause(5_000);
    }
  };
  await Promise.all(Array.from({ length: options.viewers }, (_, n) => ask(n)));
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${web.pid}/status`, "utf8"))?.[1]) / 1024;
}
