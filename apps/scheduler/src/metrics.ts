import type { Scheduler } from "@carillon/scheduler";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** From a good claim (a few ms) to a catch-up after an outage (hours). */
const LATENESS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];

/** What this node does, counted. Everything comes from the scheduler's events: nothing here asks Redis. */
export function schedulerMetrics(scheduler: Scheduler): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });

  // Counted here and handed over when asked for: looking up labels thousands of times a second costs more than the rest.
  const decided = new Map<
    string,
    { labels: Record<"outcome" | "trigger" | "reason", string>; count: number }
  >();
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
  const lateness = new Histogram({
    name: "carillon_lateness_seconds",
    help: "From an occurrence's due time to the commit of its enqueueing, in Redis time.",
    buckets: LATENESS_BUCKETS,
    registers,
  });
  const refused = new Counter({
    name: "carillon_claims_refused_total",
    help: "Claims that were not committed: another node was first (STALE, OVERLAP), too early, or an error.",
    labelNames: ["status"] as const,
    registers,
  });
  const reconciled = new Counter({
    name: "carillon_reconciled_total",
    help: "Runs that no Carillon worker settled, and jobs cleared away.",
    labelNames: ["what"] as const,
    registers,
  });
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
    name: "carillon_redis_ready",
    help: "1 while Redis can be asked.",
    registers,
    collect() {
      this.set(scheduler.store.link.ready ? 1 : 0);
    },
  });

  scheduler.on("decided", ({ outcome, trigger = "", reason = "", at, due }) => {
    const key = `${outcome} ${trigger} ${reason}`;
    const known = decided.get(key);
    if (known) known.count += 1;
    else decided.set(key, { labels: { outcome, trigger, reason }, count: 1 });
    if (outcome === "enqueued") lateness.observe(Math.max(0, at - due) / 1000);
  });
  // An error's text stays out of the label: it could be anything.
  scheduler.on("refused", ({ status }) => refused.inc({ status: status.split(" ")[0] ?? "" }));
  scheduler.on("reconciled", ({ what }) => reconciled.inc({ what }));
  scheduler.on("lost", () => lost.inc());
  return registry;
}
