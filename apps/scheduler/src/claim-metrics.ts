import type { Scheduler } from "@carillon/scheduler";
import { CLAIM_REFUSALS, REDIS_CODES, type Store } from "@carillon/scheduler/internal";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { withinASecond } from "./scrape.js";

/** Buckets from a good claim (a few ms) to a catch-up after an outage (hours), in seconds. */
const LATENESS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200];
/** Buckets from a run that ends soon to a task that stays paused (days), in seconds. */
const WAIT_BUCKETS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200, 86_400];

/** Whether due occurrences are claimed, and how soon. */
export function claimMetrics(scheduler: Scheduler, store: Store, registers: Registry[]): void {
  showReadiness(scheduler, registers);
  const refused = new Counter({
    name: "carillon_claims_refused_total",
    help: "Claims that were not committed: the task or its runs had changed (STALE, OVERLAP), too early (EARLY), or above the limit of the owner (LIMITED). Not an error.",
    labelNames: ["status"] as const,
    registers,
  });
  for (const status of CLAIM_REFUSALS) refused.inc({ status }, 0);
  const failed = new Counter({
    name: "carillon_claims_failed_total",
    help: "Claims that failed, by the code of the error.",
    labelNames: ["queue", "code"] as const,
    registers,
  });
  const lateness = new Histogram({
    name: "carillon_lateness_seconds",
    help: "Time from when an occurrence could be claimed to the commit that enqueued it, in Redis time.",
    labelNames: ["queue"] as const,
    buckets: LATENESS_BUCKETS,
    registers,
  });
  const waited = new Histogram({
    name: "carillon_policy_wait_seconds",
    help: "Time from an occurrence's due time to when it could be claimed, for those that had to wait for a run's end, a retry or a resume.",
    labelNames: ["queue"] as const,
    buckets: WAIT_BUCKETS,
    registers,
  });
  const last = new Map<string, number>();
  new Gauge({
    name: "carillon_last_claim_timestamp_seconds",
    help: "When this node last committed a decision, in Redis time.",
    labelNames: ["queue"] as const,
    registers,
    collect() {
      this.reset();
      for (const [queue, at] of last) this.set({ queue }, at / 1000);
    },
  });

  /** The histograms of each queue. Looking them up by label for each claim would cost as much as counting it. */
  const known = new Map<string, Record<"lateness" | "waited", { observe(seconds: number): void }>>();
  const of = (queue: string) => {
    let found = known.get(queue);
    if (!found) {
      found = { lateness: lateness.labels({ queue }), waited: waited.labels({ queue }) };
      known.set(queue, found);
      // Each series begins with 0, because `rate` ignores the first value.
      for (const code of REDIS_CODES) failed.inc({ queue, code }, 0);
      lateness.zero({ queue });
      waited.zero({ queue });
    }
    return found;
  };
  const forget = (queue: string) => {
    known.delete(queue);
    last.delete(queue);
    for (const code of REDIS_CODES) failed.remove({ queue, code });
    lateness.remove({ queue });
    waited.remove({ queue });
  };
  scheduler.on("decided", ({ queue, outcome, at, due, claimable = due }) => {
    last.set(queue, at);
    if (outcome !== "enqueued") return;
    const histograms = of(queue);
    histograms.lateness.observe(Math.max(0, at - claimable) / 1000);
    if (claimable > due) histograms.waited.observe((claimable - due) / 1000);
  });
  scheduler.on("refused", ({ status }) => refused.inc({ status }));
  scheduler.on("failed", ({ queue, code }) => {
    of(queue);
    failed.inc({ queue, code });
  });
  watchOverdue(store, registers, (queues) => {
    for (const queue of queues) of(queue);
    for (const queue of known.keys()) if (!queues.includes(queue)) forget(queue);
  });
}

function showReadiness(scheduler: Scheduler, registers: Registry[]): void {
  new Gauge({
    name: "carillon_ready",
    help: "What /ready answers: 1, or 0 and the reason.",
    labelNames: ["reason"] as const,
    registers,
    collect() {
      const { readiness } = scheduler;
      this.reset();
      if (readiness.ready) this.set({ reason: "" }, 1);
      else this.set({ reason: readiness.reason }, 0);
    },
  });
}

/** Read at each scrape, and omitted if Redis does not answer. @param seen called with the list of queues each time it was read */
function watchOverdue(store: Store, registers: Registry[], seen: (queues: readonly string[]) => void): void {
  async function measure(): Promise<(readonly [queue: string, seconds: number])[]> {
    if (!store.ready) return [];
    const read = await withinASecond(() => Promise.all([store.registry.queues(), store.serverTime()]));
    if (!read) return [];
    const [queues, now] = read;
    seen(queues);
    const overdue = queues.map(async (queue) => {
      // Separately, because in a cluster a server that hangs must not hide the queues of the others.
      const due = await withinASecond(async () => (await store.claims.earliestDue(queue)) ?? now);
      return due === undefined ? [] : [[queue, Math.max(0, now - due) / 1000] as const];
    });
    return (await Promise.all(overdue)).flat();
  }
  new Gauge({
    name: "carillon_overdue_seconds",
    help: "Age of the oldest due occurrence that no node has claimed; 0 if there is none. All nodes report the same: take the maximum.",
    labelNames: ["queue"] as const,
    registers,
    async collect() {
      const found = await measure();
      // No await from here on, so that two concurrent scrapes both get complete values.
      this.reset();
      for (const [queue, seconds] of found) this.set({ queue }, seconds);
    },
  });
}
