// Report of every bench: targets and results, the machine, and one line of JSON for other programs.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { tableOf } from "../../lib/table.mjs";

const require = createRequire(import.meta.url);

export function median(values) {
  return percentile(values, 0.5);
}

/** NaN for an empty list. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** @param {string} metric @param {number} value @param {">=" | "<="} sense @param {number} bound */
export function target(metric, value, sense, bound) {
  const pass = sense === ">=" ? value >= bound : value <= bound;
  return { metric, value: Number(value.toPrecision(4)), target: `${sense} ${bound}`, pass };
}

/**
 * Prints targets, then other figures, then a table if there is one, then the machine; with `json` one object on the
 * last line.
 * @param {{ bench: string, targets: ReturnType<typeof target>[], seen?: object, table?: object[], redis?: string,
 * smoke?: boolean }} report
 * @param {boolean} json
 */
export function print({ bench, targets, seen = {}, table = [], redis = "?", smoke = false }, json) {
  console.log(`${bench}${smoke ? " (smoke: too small to judge by)" : ""}`);
  for (const { metric, value, target: goal, pass } of targets) {
    console.log(`  ${pass ? "pass" : "FAIL"}  ${metric}: ${value} (${goal})`);
  }
  for (const [name, value] of Object.entries(seen)) console.log(`  ${name}: ${text(value)}`);
  for (const line of tableLines(table)) console.log(`  ${line}`);
  const machine = machineText(redis);
  console.log(`  ${machine}`);
  if (json) console.log(JSON.stringify({ bench, targets, seen, table, machine }));
}

/** The first row determines the columns. */
function tableLines(rows) {
  if (rows.length === 0) return [];
  const columns = Object.keys(rows[0]);
  return tableOf([columns, ...rows.map((row) => columns.map((column) => text(row[column] ?? "")))]);
}

function text(value) {
  if (typeof value === "number") return String(Number(value.toPrecision(4)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

function machineText(redis) {
  const cpu = cpus();
  return [
    `${cpu[0]?.model.trim() ?? "?"} x ${cpu.length}`,
    `load ${loadavg()[0].toFixed(1)}`,
    `Node ${process.versions.node}`,
    `Redis ${redis}`,
    `bullmq ${version("bullmq")}`,
    `ioredis ${version("ioredis")}`,
  ].join(", ");
}

export function version(name) {
  // Not through `require`: packages need not export their package.json.
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, "utf8")).version;
    } catch {}
  }
  return "?";
}
