import { Scheduler } from "@carillon/scheduler";
import { Store } from "@carillon/sdk/internal";
import type { Registry } from "prom-client";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SILENT } from "../../../test/helpers.js";
import { schedulerMetrics } from "../src/metrics.js";

let scheduler: Scheduler;
let store: Store;
let registry: Registry;
beforeEach(() => {
  store = new Store({ connection: "redis://127.0.0.1:1" });
  scheduler = new Scheduler({ store, logger: SILENT });
  registry = schedulerMetrics(scheduler, store);
});
afterEach(async () => {
  await scheduler.stop();
  await store.close();
});

/** The lines of one metric, without its name and without zeros. */
async function lines(name: string): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(name);
  const values = text.split("\n").filter((line) => !line.startsWith("#") && !line.endsWith(" 0"));
  return values.map((line) => line.replace(name, ""));
}
const decided = (at: number, due: number, more: object) =>
  scheduler.emit("decided", { queue: "q", task: "system/t", at, due, nominal: due, ...more } as never);

it("decisions are counted by outcome and reason, however often they are read", async () => {
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

it("the wait by policy and the lateness after it are measured separately", async () => {
  decided(1_000, 1_004, { outcome: "enqueued", trigger: "schedule", claimable: 1_004 });
  decided(9_000, 1_000, { outcome: "enqueued", trigger: "schedule", claimable: 7_000 });
  decided(9_000_000, 0, { outcome: "skipped", reason: "missed" });
  const late = await lines("carillon_lateness_seconds");
  const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
  expect(late).toEqual([
    ...bounds.map((bound) => `_bucket{le="${bound}",queue="q"} ${bound < 2 ? 1 : 2}`),
    '_bucket{le="+Inf",queue="q"} 2',
    '_sum{queue="q"} 2',
    '_count{queue="q"} 2',
  ]);
  const waited = await lines("carillon_policy_wait_seconds");
  expect(waited.slice(-2)).toEqual(['_sum{queue="q"} 6', '_count{queue="q"} 1']);
  expect(await lines("carillon_last_claim_timestamp_seconds")).toEqual(['{queue="q"} 9000']);
});

it("refused and failed claims, runs by outcome, and parts of other nodes are counted", async () => {
  scheduler.emit("refused", { queue: "q", task: "system/t", status: "STALE" });
  scheduler.emit("failed", { queue: "q", code: "REDIS_READ_ONLY" });
  scheduler.emit("reconciled", { queue: "q", run: "r", what: "crashed" });
  scheduler.emit("lost", { queue: "q", part: "1" });
  expect(await lines("carillon_claims_refused_total")).toEqual(['{status="STALE"} 1']);
  expect(await lines("carillon_claims_failed_total")).toEqual(['{queue="q",code="REDIS_READ_ONLY"} 1']);
  expect(await lines("carillon_reconciled_total")).toEqual(['{what="crashed"} 1']);
  expect(await lines("carillon_mutex_lost_total")).toEqual([" 1"]);
});

it("each decision and repair is counted from 0", async () => {
  const all = async (name: string) =>
    (await registry.getSingleMetricAsString(name)).match(/^carillon.* 0$/gm);
  expect(await all("carillon_occurrences_total")).toHaveLength(7 + 12);
  expect(await all("carillon_reconciled_total")).toHaveLength(9 + 3);
  expect(await lines("carillon_build_info")).toEqual([
    expect.stringMatching(/^{version="\d.*",bullmq="\d.*",node="\d.*",namespace="carillon"} 1$/),
  ]);
});

it("each refusal has a series from the start, and each failure once the queue is known", async () => {
  const all = async (name: string) => (await registry.getSingleMetricAsString(name)).match(/(?<==")[A-Z_]+/g);
  expect(await all("carillon_claims_refused_total")).toEqual(["STALE", "EARLY", "OVERLAP", "LIMITED"]);
  expect(await all("carillon_claims_failed_total")).toBeNull();
  decided(1_000, 1_000, { outcome: "enqueued", trigger: "schedule" });
  expect(await all("carillon_claims_failed_total")).toEqual([
    "REDIS_UNAVAILABLE",
    "REDIS_AUTH",
    "REDIS_READ_ONLY",
    "REDIS_OUT_OF_MEMORY",
    "REDIS_UNSAFE",
    "REDIS_ERROR",
  ]);
});

it("the clock offset in seconds and the readiness are shown", async () => {
  Object.defineProperty(scheduler, "clockOffset", { value: 1_500 });
  expect(await lines("carillon_clock_offset_seconds")).toEqual([" 1.5"]);
  const ready = () => registry.getSingleMetricAsString("carillon_ready");
  const reason = scheduler.readiness.ready ? "" : scheduler.readiness.reason;
  expect(await ready()).toContain(`carillon_ready{reason="${reason}"} 0`);
  Object.defineProperty(scheduler, "readiness", { value: { ready: true } });
  expect((await ready()).match(/^carillon_ready.*$/gm)).toEqual(['carillon_ready{reason=""} 1']);
});

it("the overdue time of a queue is shown while another queue's server hangs", async () => {
  const own = {
    ready: true,
    serverTime: async () => 5_000,
    registry: { queues: async () => ["hangs", "q"] },
    claims: { earliestDue: async (queue: string) => (queue === "q" ? 2_000 : new Promise(() => {})) },
  };
  registry = schedulerMetrics(scheduler, own as unknown as Store);
  expect(await lines("carillon_overdue_seconds")).toEqual(['{queue="q"} 3']);
});
