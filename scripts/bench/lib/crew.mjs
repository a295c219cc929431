// Programs that report "ready", then send rows of results: workers, and replicas of peers.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const BUSY_LOOP = fileURLToPath(new URL("./busy-loop.mjs", import.meta.url));

/**
 * Starts one after the other, because some prepare data that the next ones need.
 * @param {string} file
 * @param {string[][]} argLists one for each program
 * @returns {Promise<{ seen: unknown[][], pids: number[], stop: () => Promise<unknown> }>} rows, growing until `stop`
 */
export async function startCrew(file, argLists) {
  const seen = [];
  const children = [];
  for (const args of argLists) {
    const child = fork(file, args);
    children.push(child);
    await new Promise((resolve, reject) => {
      child.once("message", resolve);
      child.once("exit", (code) => reject(new Error(`${file} ${args.join(" ")} ended with ${code}`)));
    });
    child.on("message", (/** @type {any[]} */ rows) => seen.push(...rows));
  }
  const stop = () => Promise.all(children.map(end));
  return { seen, pids: children.map(({ pid }) => pid), stop };
}

function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  return new Promise((resolve) => child.once("exit", resolve));
}

/** Starts programs that only use CPU, until `stop`. */
export function startBusyLoops(count) {
  const loops = Array.from({ length: count }, () => fork(BUSY_LOOP));
  return { stop: () => Promise.all(loops.map(end)) };
}

/** For use in such a program: call `ready` after the set-up, and `add` for each row, which is sent within 200 ms. */
export function home() {
  let rows = [];
  const flush = () => {
    if (rows.length > 0) process.send?.(rows);
    rows = [];
  };
  setInterval(flush, 200);
  // The bench was killed, so nothing else would stop this program.
  process.once("disconnect", () => process.exit());
  return {
    add: (row) => rows.push(row),
    /** @param {() => unknown} stop called before the end */
    ready(stop) {
      process.send?.("ready");
      process.on("SIGTERM", async () => {
        await stop();
        flush();
        process.exit(0);
      });
    },
  };
}
