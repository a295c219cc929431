import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processIdentity } from "./process.mjs";
import { stateDir } from "./project.mjs";

/**
 * Takes a lock of this checkout. Returns the function that releases it or, if a living process has it, that process's
 * id as `heldBy`.
 */
export function tryLock(name) {
  const file = join(stateDir(), `${name}.lock`);
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid) }));
  try {
    return place(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Links the finished file into its place, so that nobody reads an incomplete lock. */
function place(draft, file) {
  for (;;) {
    try {
      linkSync(draft, file);
      const release = () => {
        process.off("exit", release); // by then it may belong to another process
        rmSync(file, { force: true });
      };
      process.once("exit", release);
      return { release };
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const holder = read(file);
    if (holder && processIdentity(holder.pid) === holder.identity) return { heldBy: holder.pid };
    rmSync(file, { force: true });
  }
}

/** Runs `work` while no other command of this checkout does the same. */
export async function withLock(name, work, onWait) {
  for (let waited = false; ; waited = true) {
    const lock = tryLock(name);
    if (lock.release) {
      try {
        return await work();
      } finally {
        lock.release();
      }
    }
    if (!waited) onWait(lock.heldBy);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
