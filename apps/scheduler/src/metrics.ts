import { setTimeout as pause } from "node:timers/promises";
import type { Scheduler } from "@carillon/scheduler";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** From a good claim (a few ms) to a catch-up after an outage (hours). */
const LATENESS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];

/** Longest wait for Redis when metrics are asked for, in ms: all others are told without it. */
const WAIT_AT_MOST = 1_000;

/** What this node does, counted from the scheduler's events; and how runs end, which Redis counts for all processes. */
export function schedulerMetrics(scheduler: Scheduler): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  countRuns(scheduler, registers);

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

/** Where Redis does not answer, these numbers are left out: none of them is this node's own. */
function countRuns({ store }: Scheduler, registers: Registry[]): void {
  async function read() {
    if (!store.link.ready) return [];
    const queues = await store.registry.queues();
    return Promise.all(queues.map(async (queue) => ({ queue, outcomes: await store.runs.outcomes(queue) })));
  }
  new Counter({
    name: "carillon_runs_total",
    help: "Runs that ended, over all processes. Each node tells the same: take the maximum of all nodes, not their sum.",
    labelNames: ["queue", "outcome"] as const,
    registers,
    async collect() {
      const late = pause(WAIT_AT_MOST, [], { ref: false });
      const found = await Promise.race([read(), late]).catch(() => []);
      // Nothing is awaited from here on: two that ask at once are both told the truth.
      this.reset();
      for (const { queue, outcomes } of found) {
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ queue, outcome }, count);
      }
    },
  });
}
