import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Identifies the process that has this id; undefined if none has. Two different processes never give the same answer,
 * while ids alone repeat: after a reboot, and in every container.
 */
export function processIdentity(pid) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error.code !== "EPERM") return undefined;
  }
  try {
    if (process.platform === "linux") {
      const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      // The name, in parentheses, may contain anything; state, parent, … start time follow.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return fields[0] === "Z" ? undefined : `${boot}/${fields[19]}`;
    }
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/** Resolves to whether the process ended in time. */
async function ended(pid, identity, timeoutMs) {
  const deadline = Date.now() + timeoutMs;
  while (processIdentity(pid) === identity) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return true;
}

/** Sends SIGTERM, then SIGKILL if the process does not end. */
export async function terminate(pid, identity, timeoutMs = 8_000) {
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    try {
      process.kill(pid, signal);
    } catch {
      return; // has ended already
    }
    if (await ended(pid, identity, timeoutMs)) return;
  }
}
