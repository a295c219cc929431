#!/usr/bin/env node
import { createServer } from "node:net";
import { resolve } from "node:path";
import { Client, isCarillonError } from "@carillon/sdk";
import { type Line, Managed } from "./processes.js";
import { seed } from "./seed.js";
import { readSettings, type Settings } from "./settings.js";
import { Tally } from "./tally.js";
import { demoTypes } from "./types.js";
import { View } from "./view.js";

/** The demo: three replicas, two workers, the console, some tasks, and a live view. */
const project = resolve(import.meta.dirname, "../../..");
const { connection, namespace, redisUrl, token, port: wantedPort } = settings();
const folder = resolve(project, ".carillon/demo");
const port = await firstFree(wantedPort);
const consoleUrl = `http://127.0.0.1:${port}`;
const signInUrl = `${consoleUrl}/?span=1h&token=${encodeURIComponent(token)}`;

const view = new View(process.stdout);
const tally = new Tally();
const client = new Client({ connection, namespace });
let onListening = () => {};
const processes = makeProcesses();

/** Settings of the demo. A mistake in them is one line, without a stack. */
function settings(): Settings {
  try {
    return readSettings(process.env);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(2);
  }
}

function makeProcesses(): Managed[] {
  const shared = { CARILLON_NAMESPACE: namespace, REDIS_URL: redisUrl };
  const hear = (line: Line) => {
    if (line.from.kind === "console" && line.msg === "listening") onListening();
    view.hear(line);
  };
  const replicas = ["node-1", "node-2", "node-3"].map((name) => {
    const env = { ...shared, CARILLON_NODE_ID: name, CARILLON_PORT: "0", CARILLON_LOG_LEVEL: "debug" };
    return new Managed(name, "replica", "../../scheduler/bin/carillon-scheduler.js", env, hear);
  });
  const workers = ["worker-1", "worker-2"].map((name) => {
    const env = { ...shared, DEMO_WORKER: name, DEMO_FOLDER: folder, CARILLON_LOG_LEVEL: "debug" };
    return new Managed(name, "worker", "./worker.js", env, hear);
  });
  const env = {
    ...shared,
    CARILLON_CONSOLE_PORT: String(port),
    CARILLON_TOKEN: token,
    CARILLON_LOG_LEVEL: "info",
  };
  return [
    ...replicas,
    ...workers,
    new Managed("console", "console", "../../console/bin/carillon-console.js", env, hear),
  ];
}

async function main(): Promise<void> {
  const listening = new Promise<void>((settle) => {
    onListening = settle;
    // The rest starts even if the console does not.
    setTimeout(settle, 10_000).unref();
  });
  for (const one of processes) one.start();
  await listening;
  const types = demoTypes({ client, connection, folder });
  await seed(client, types, { consoleUrl, project });
  const shownUrl = withoutPassword(redisUrl);
  const cli = cliCommand(shownUrl);
  view.start({ namespace, consoleUrl: signInUrl, redisUrl: shownUrl, cli }, processes, tally);
  view.say("demo", `Console: ${signInUrl}`);
  view.say("demo", `CLI: ${cli}`);
  keepTally();
  listenToKeys();
}

/** Reads the records, not the output of the processes: a killed replica prints nothing. */
function keepTally(): void {
  const every = view.live ? 1_000 : 10_000;
  setInterval(async () => {
    try {
      await tally.refresh(client);
      if (!view.live)
        view.say("tally", `${tally.enqueued} enqueued, ${tally.missed} missed, ${tally.doubled} doubled`);
    } catch (error) {
      view.say("tally", error instanceof Error ? error.message : String(error));
    }
  }, every).unref();
}

function listenToKeys(): void {
  if (!process.stdin.isTTY || !view.live) return;
  process.stdin.setRawMode(true).resume();
  process.stdin.on("data", (key) => {
    const text = key.toString();
    if (text === "q" || text === "\u0003") void stop();
    if (text === "k") {
      const alive = processes.filter(({ kind, alive }) => kind === "replica" && alive);
      const victim = alive[Math.floor(Math.random() * alive.length)];
      if (victim) {
        view.say("demo", `kill -9 ${victim.name}`);
        victim.kill();
      }
    }
  });
}

let stoppingSince: number | undefined;

/** Stops new work first, then running work, then the rest. A second Ctrl-C does not wait. */
async function stop(code = 0): Promise<void> {
  if (stoppingSince !== undefined) {
    // The terminal signals the whole group, and the parent process forwards the signal: both count as one Ctrl-C.
    if (performance.now() - stoppingSince < 1_000) return;
    for (const one of processes) one.kill();
    process.exit(130);
  }
  stoppingSince = performance.now();
  view.stop();
  process.stdout.write("Stopping: replicas, workers, console. Ctrl-C again to stop at once.\n");
  const of = (kind: Managed["kind"]) => processes.filter((one) => one.kind === kind);
  await Promise.all(of("replica").map((one) => one.stop(10_000)));
  await Promise.all(of("worker").map((one) => one.stop(15_000)));
  await Promise.all(of("console").map((one) => one.stop(5_000)));
  await client.close();
  process.exit(code);
}

async function firstFree(wanted: number): Promise<number> {
  for (const candidate of [wanted, 0]) {
    const found = await new Promise<number | undefined>((settle) => {
      const server = createServer();
      server.once("error", () => settle(undefined));
      server.listen(candidate, "127.0.0.1", () => {
        const address = server.address();
        server.close(() => settle(typeof address === "object" && address ? address.port : undefined));
      });
    });
    if (found !== undefined) return found;
  }
  throw new Error("No free port for the console.");
}

/** Never prints a password in a command line: a URL with one comes from `REDIS_URL`. */
function cliCommand(shownUrl: string): string {
  const redis = shownUrl === redisUrl ? ` --redis ${redisUrl}` : "";
  return `npx carillon${redis} --namespace ${namespace} list`;
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/g, "//").replace(/\?.*/, "");
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => void stop());
// The parent process was killed: the children must be stopped here.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) void stop();
}, 2_000).unref();
process.on("exit", () => {
  for (const one of processes) one.kill();
});
try {
  await main();
} catch (error) {
  process.stderr.write(`${isCarillonError(error) ? error.message : String(error)}\n`);
  await stop(1);
}
