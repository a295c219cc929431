// npm start: three scheduler replicas, workers and the console, on a private Redis.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tryLock } from "./lib/lock.mjs";
import { main, root, say, Trouble } from "./lib/project.mjs";
import { exitCode } from "./lib/run.mjs";
import { redisBinary, setUp } from "./lib/setup.mjs";

const SUPERVISOR = join(root, "apps", "demo", "dist", "main.js");

await main(async () => {
  const lock = tryLock("start");
  if (lock.heldBy) {
    throw new Trouble(
      `already running here as process ${lock.heldBy}. Stop that one first, or use another checkout.`,
    );
  }
  const stopping = untilAskedToStop();
  await setUp();
  if (stopping.asked) return exitCode(null, stopping.asked);
  if (!existsSync(SUPERVISOR)) throw new Trouble(`the build left no ${SUPERVISOR}.`);

  const redis = await findRedis();
  try {
    if (stopping.asked) return exitCode(null, stopping.asked);
    return await supervise(redis.url, stopping);
  } finally {
    await redis.stop();
  }
});

async function findRedis() {
  const given = process.env.REDIS_URL;
  if (given) {
    say("using the Redis of REDIS_URL");
    return { url: given, stop: async () => {} };
  }
  await redisBinary();
  const { startRedis } = await import("@carillon/testing");
  const redis = await startRedis({ appendonly: true });
  say(`started a Redis of our own on port ${redis.port}; its data is deleted at the end`);
  return redis;
}

/** Runs the demo and forwards signals; resolves to its exit code. */
function supervise(url, stopping) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SUPERVISOR, ...process.argv.slice(2)], {
      cwd: root,
      env: { ...process.env, REDIS_URL: url },
      stdio: "inherit",
    });
    stopping.onSignal = (signal) => child.kill(signal);
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(exitCode(code, signal)));
  });
}

/**
 * From now on signals do not end this process: the demo stops first, then its Redis. A terminal and npm both send
 * Ctrl-C, so signals within a second of the first count as one; later ones are forwarded.
 */
function untilAskedToStop() {
  const state = { asked: undefined, onSignal: (/** @type {NodeJS.Signals} */ _signal) => {} };
  let last = 0;
  const ask = (signal) => {
    if (Date.now() - last < 1_000) return;
    last = Date.now();
    state.asked = signal;
    state.onSignal(signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, ask);
  process.on("SIGHUP", () => ask("SIGTERM"));
  // npm may die without notifying the shell between it and this process; then the parent changes.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env.npm_lifecycle_event !== "start" || process.ppid === parent) return;
    clearInterval(watch);
    ask("SIGTERM");
  }, 1_000);
  watch.unref();
  return state;
}
