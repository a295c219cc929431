import type { Scheduler } from "@carillon/scheduler";
import type { Store } from "@carillon/scheduler/internal";
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { claimMetrics } from "./claim-metrics.js";
import { withinASecond } from "./within.js";

/** Metrics of this node, counted from the scheduler's events; and outcomes of runs, which Redis counts for all processes. */
export function schedulerMetrics(scheduler: Scheduler, store: Store): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  countRuns(store, registers);
  claimMetrics(scheduler, store, registers);
  measureQueues(store, registers);

  // Counted here and copied at each scrape: looking up labels thousands of times a second costs more than the rest.
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
  const reconciled = new Counter({
    name: "carillon_reconciled_total",
    help: "Runs that the reconciler settled or reopened, and finished tasks that it removed.",
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
  scheduler.on("decided", ({ outcome, trigger = "", reason = "" }) => {
    const key = `${outcome} ${trigger} ${reason}`;
    const known = decided.get(key);
    if (known) known.count += 1;
    else decided.set(key, { labels: { outcome, trigger, reason }, count: 1 });
  });
  scheduler.on("reconciled", ({ what }) => reconciled.inc({ what }));
  scheduler.on("lost", () => lost.inc());
  return registry;
}

/** Omitted if Redis does not answer, because they are not this node's own numbers. */
function countRuns(store: Store, registers: Registry[]): void {
  async function read() {
    if (!store.ready) return [];
    const queues = await store.registry.queues();
    return Promise.all(queues.map(async (queue) => ({ queue, outcomes: await store.runs.outcomes(queue) })));
  }
  new Counter({
    name: "carillon_runs_total",
    help: "Runs that ended, over all processes. All nodes report the same: take the maximum, not the sum.",
    labelNames: ["queue", "outcome"] as const,
    registers,
    async collect() {
      const found = (await withinASecond(read)) ?? [];
      // No await from here on, so that two concurrent scrapes both get complete values.
      this.reset();
      for (const { queue, outcomes } of found) {
        for (const [outcome, count] of Object.entries(outcomes)) this.inc({ queue, outcome }, count);
      }
    },
  });
}

/** Waiting jobs by queue, read once per scrape. Also omitted if Redis does not answer, and the same from each node. */
function measureQueues(store: Store, registers: Registry[]): void {
  async function read() {
    if (!store.ready) return [];
    const names = await store.registry.queues();
    const [workers, states] = await Promise.all([
      store.queues.workers(names),
      Promise.all(names.map((name) => store.queues.state(name))),
    ]);
    return names.map((queue, i) => ({ queue, workers: workers?.get(queue), ...states[i] }));
  }
  type Measured = Awaited<ReturnType<typeof read>>[number];
  let reading: Promise<Measured[] | undefined> | undefined;
  function readOnce(): Promise<Measured[] | undefined> {
    reading ??= withinASecond(read).finally(() => {
      reading = undefined;
    });
    return reading;
  }
  function gauge(name: string, help: string, measure: (queue: Measured) => number | undefined): void {
    new Gauge({
      name: `carillon_queue_${name}`,
      help: `${help} Each node reports the same: take the maximum of all nodes, not their sum.`,
      labelNames: ["queue"] as const,
      registers,
      async collect() {
        const found = await readOnce();
        this.reset();
        for (const queue of found ?? []) {
          const value = measure(queue);
          if (value !== undefined) this.set({ queue: queue.queue }, value);
        }
      },
    });
  }
  // A queue whose keys are corrupt has no state.
  gauge("paused", "1 while workers take no jobs of the queue.", ({ waiting, paused }) =>
    waiting === undefined ? undefined : paused ? 1 : 0,
  );
  gauge("waiting_jobs", "Jobs that wait for a worker.", ({ waiting }) => waiting);
  gauge("active_jobs", "Jobs that workers hold.", ({ active }) => active);
  gauge(
    "oldest_waiting_seconds",
    "Age of the job that has waited longest; 0 if none waits.",
    ({ waiting, oldestWaitingMs = 0 }) => (waiting === undefined ? undefined : oldestWaitingMs / 1000),
  );
  gauge(
    "workers",
    "BullMQ workers that are connected. Missing if Redis does not list clients.",
    ({ workers }) => workers,
  );
}
