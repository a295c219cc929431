// Memory over time: of each process, and of Redis with its number of keys.
import { execFileSync } from "node:child_process";
import { ask } from "./servers.mjs";

/** Resident memory in MB. */
function residentMb(pid) {
  try {
    return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1_024;
  } catch {
    return undefined; // it has just ended
  }
}

export class Samples {
  /** Values in order, by series. */
  series = new Map();

  #add(name, value) {
    if (value === undefined || Number.isNaN(value)) return;
    this.series.set(name, [...(this.series.get(name) ?? []), Math.round(value * 10) / 10]);
  }

  /** @param {any[]} children processes that live throughout the run */
  async take(children, masters) {
    for (const child of children) if (!child.down) this.#add(`${child.id} MB`, residentMb(child.pid));
    let [used, keys] = [0, 0];
    for (const master of masters) {
      used += Number(/used_memory:(\d+)/.exec(String(await ask(master, "INFO", "memory")))?.[1]);
      keys += Number(await ask(master, "DBSIZE"));
    }
    this.#add("redis MB", used / 2 ** 20);
    this.#add("redis keys", keys);
  }

  /** Medians of the second and the last quarter of each series. The first quarter is the start-up. */
  trends() {
    return Object.fromEntries(
      [...this.series].map(([name, values]) => {
        const quarter = Math.floor(values.length / 4);
        return [
          name,
          { early: median(values.slice(quarter, 2 * quarter)), late: median(values.slice(-quarter)) },
        ];
      }),
    );
  }
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}
