import { spawn } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { join } from "node:path";
import { processIdentity, terminate } from "./process.mjs";
import { say, stateDir, Trouble } from "./project.mjs";

const HOST = "127.0.0.1";
const START_MS = 30_000;

/**
 * Starts a Redis of this checkout: any free port of 127.0.0.1, data in `.carillon/redis`. Returns its URL
 * and the function that stops it.
 */
export async function startPrivateRedis(binary) {
  const dir = stateDir("redis");
  const pidFile = join(stateDir(), "redis.pid");
  await stopLeftover(pidFile);

  const port = await freePort();
  const log = join(dir, "redis.log");
  // Detached: Ctrl-C must reach its users first, and the server after them.
  const child = spawn(binary, serverArguments({ port, dir, log }), { stdio: "ignore", detached: true });
  let over;
  child.once("error", (error) => {
    over = error.message;
  });
  child.once("exit", (code, signal) => {
    over = `it ended with ${signal ?? code}`;
  });
  const identity = child.pid && processIdentity(child.pid);
  if (identity) writeFileSync(pidFile, JSON.stringify({ pid: child.pid, identity }));

  const stop = async () => {
    if (over === undefined) await terminate(child.pid, identity);
    rmSync(pidFile, { force: true });
  };
  for (const deadline = Date.now() + START_MS; !(await answersPing(port)); await pause(40)) {
    if (over === undefined && Date.now() < deadline) continue;
    await stop();
    throw new Trouble(
      `Redis did not start: ${over ?? "no answer"}. Its log, ${log}, ends with:\n${tail(log)}`,
    );
  }
  return { url: `redis://${HOST}:${port}`, port, stop };
}

function serverArguments({ port, dir, log }) {
  return Object.entries({
    port,
    bind: HOST,
    dir,
    logfile: log,
    daemonize: "no",
    save: "",
    appendonly: "yes",
    appendfsync: "everysec",
    "maxmemory-policy": "noeviction",
  }).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

/**
 * An earlier command may have been killed before it could stop its server; two servers on one folder would corrupt the
 * data.
 */
async function stopLeftover(pidFile) {
  let left;
  try {
    left = JSON.parse(readFileSync(pidFile, "utf8"));
  } catch {
    return;
  }
  if (processIdentity(left.pid) === left.identity) {
    say(`stopping the Redis that an earlier start left behind (process ${left.pid})`);
    await terminate(left.pid, left.identity);
  }
  rmSync(pidFile, { force: true });
}

/** Below the ports of outgoing connections, so that no client ever gets the port of a server that is down. */
async function freePort() {
  for (;;) {
    const port = 22_000 + Math.floor(Math.random() * 9_000);
    const probe = createServer();
    const free = await new Promise((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen({ port, host: HOST, exclusive: true }, () => resolve(true));
    });
    if (free) return new Promise((resolve) => probe.close(() => resolve(port)));
  }
}

/** False also while it still loads its data. */
function answersPing(port) {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: HOST }, () => socket.write("PING\r\n"));
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => finish(false));
    socket.once("data", (data) => finish(data.toString().startsWith("+PONG")));
    socket.once("error", () => finish(false));
    socket.once("close", () => finish(false));
  });
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function tail(file) {
  try {
    return readFileSync(file, "utf8").trim().split("\n").slice(-5).join("\n");
  } catch {
    return "(empty)";
  }
}
