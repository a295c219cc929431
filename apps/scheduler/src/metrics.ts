import type { Scheduler } from "@carillon/scheduler";
import { bullVersion, SKIP_REASONS, type Store, TRIGGERS, VERSION } from "@carillon/scheduler/internal";
import { OUTCOMES } from "@carillon/sdk/internal";
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { claimMetrics } from "./claim-metrics.js";
import { namespaceMetrics } from "./namespace-metrics.js";
import { taskMetrics } from "./task-metrics.js";

/**
 * Metrics of this node, counted from the scheduler's events; and those of the namespace, which are read from Redis.
 *
 * @param tag tasks with this tag get series of their own. Default: no task
 */
export function schedulerMetrics(scheduler: Scheduler, store: Store, tag?: string): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  showBuild(store, registers);
  claimMetrics(scheduler, store, registers);
  namespaceMetrics(store, registers);
  if (tag !== undefined) taskMetrics(store, tag, registers);

  // Counted here and copied at each scrape: looking up labels thousands of times a second costs more than the rest.
  const decided = new Map<
    string,
    { labels: Record<"outcome" | "trigger" | "reason", string>; count: number }
  >();
  const count = (outcome: string, trigger: string, reason: string, by: number) => {
    const key = `${outcome} ${trigger} ${reason}`;
    const known = decided.get(key);
    if (known) known.count += by;
    else decided.set(key, { labels: { outcome, trigger, reason }, count: by });
  };
  // Each series begins with 0, because `rate` ignores the first value.
  for (const trigger of TRIGGERS) count("enqueued", trigger, "", 0);
  for (const reason of SKIP_REASONS) count("skipped", "", reason, 0);
  new Counter({
    name: "carillon_occurrences_total",
    help: "Decisions that this node committed.",
    labelNames: ["outcome", "trigger", "reason"] as const,
    registers,
    collect() {
      this.reset();
      for (const { labels, count } of decided.values()) this.inc(labels, count);
    },
  });
  const reconciled = new Counter({
    name: "carillon_reconciled_total",
    help: "Runs that the reconciler settled or reopened, and finished tasks that it removed.",
    labelNames: ["what"] as const,
    registers,
  });
  for (const what of [...OUTCOMES, "reopened", "removed", "unreadable"]) reconciled.inc({ what }, 0);
  const lost = new Counter({
    name: "carillon_mutex_lost_total",
    help: "Times a shard was due while another node held its mutex. Not an error.",
    registers,
  });
  new Gauge({
    name: "carillon_clock_offset_seconds",
    help: "How far this machine's clock is ahead of Redis. Harmless to scheduling.",
    registers,
    collect() {
      this.set(scheduler.clockOffset / 1000);
    },
  });
  new Gauge({
    name: "carillon_redis_roundtrip_seconds",
    help: "Usual round trip of a command to Redis: the median of the last five heartbeats.",
    registers,
    collect() {
      const { roundTrip } = scheduler;
      // A reset metric without labels is 0.
      this.remove();
      if (roundTrip !== undefined) this.set(roundTrip / 1000);
    },
  });
  scheduler.on("decided", ({ outcome, trigger = "", reason = "" }) => count(outcome, trigger, reason, 1));
  scheduler.on("reconciled", ({ what }) => reconciled.inc({ what }));
  scheduler.on("lost", () => lost.inc());
  return registry;
}

function showBuild({ namespace }: Store, registers: Registry[]): void {
  new Gauge({
    name: "carillon_build_info",
    help: "1, with the versions of Carillon, BullMQ and Node.js, and the namespace that this node serves.",
    labelNames: ["version", "bullmq", "node", "namespace"],
    registers,
    async collect() {
      this.set({ version: VERSION, bullmq: await bullVersion(), node: process.versions.node, namespace }, 1);
    },
  });
}
