import { Scheduler } from "@carillon/scheduler";
import type { Registry } from "prom-client";
import { afterEach, beforeEach, expect, it } from "vitest";
import { schedulerMetrics } from "../src/metrics.js";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

let scheduler: Scheduler;
let registry: Registry;
beforeEach(() => {
  scheduler = new Scheduler({ connection: "redis://127.0.0.1:1", logger: SILENT });
  registry = schedulerMetrics(scheduler);
});
afterEach(() => scheduler.stop());

/** The lines of one metric, without its name and without what is 0. */
async function lines(name: string): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(name);
  const values = text.split("\n").filter((line) => !line.startsWith("#") && !line.endsWith(" 0"));
  return values.map((line) => line.replace(name, ""));
}
const decided = (at: number, due: number, more: object) =>
  scheduler.emit("decided", { queue: "q", task: "system/t", at, due, nominal: due, ...more } as never);

it("counts what was decided, by what and why, however often it is asked", async () => {
  for (let i = 0; i < 2; i++) decided(0, 0, { outcome: "enqueued", trigger: "schedule" });
  decided(0, 0, { outcome: "enqueued", trigger: "retry" });
  decided(0, 0, { outcome: "skipped", reason: "overlap" });
  const counted = [
    '{outcome="enqueued",trigger="schedule",reason=""} 2',
    '{outcome="enqueued",trigger="retry",reason=""} 1',
    '{outcome="skipped",trigger="",reason="overlap"} 1',
  ];
  expect(await lines("carillon_occurrences_total")).toEqual(counted);
  expect(await lines("carillon_occurrences_total")).toEqual(counted);
});

it("measures in seconds how late what was enqueued is; what came early is not late", async () => {
  decided(1_000, 1_004, { outcome: "enqueued", trigger: "schedule" });
  decided(9_000, 1_000, { outcome: "enqueued", trigger: "schedule" });
  decided(9_000_000, 0, { outcome: "skipped", reason: "missed" });
  const late = await lines("carillon_lateness_seconds");
  const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
  expect(late).toEqual([
    ...bounds.map((bound) => `_bucket{le="${bound}"} ${bound < 8 ? 1 : 2}`),
    ...['_bucket{le="+Inf"} 2', "_sum 8", "_count 2"],
  ]);
});

it("counts refused claims by their first word, runs by what became of them, and parts that others had", async () => {
  for (const status of ["STALE", "ERROR with a secret"]) {
    scheduler.emit("refused", { queue: "q", task: "system/t", status });
  }
  scheduler.emit("reconciled", { queue: "q", run: "r", what: "crashed" });
  scheduler.emit("lost", { queue: "q", part: "1" });
  expect(await lines("carillon_claims_refused_total")).toEqual(['{status="STALE"} 1', '{status="ERROR"} 1']);
  expect(await lines("carillon_reconciled_total")).toEqual(['{what="crashed"} 1']);
  expect(await lines("carillon_mutex_lost_total")).toEqual([" 1"]);
});

it("says how far the clock is ahead, in seconds, and whether Redis is there", async () => {
  Object.defineProperty(scheduler, "clockOffset", { value: 1_500 });
  expect(await lines("carillon_clock_offset_seconds")).toEqual([" 1.5"]);
  expect(await lines("carillon_redis_ready")).toEqual([]);
});
