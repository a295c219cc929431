import { OUTCOMES } from "@carillon/core";
import type { RunEvent } from "./worker/options.js";
import type { Worker } from "./worker.js";

/** Buckets from a job that a free worker takes at once to one that waits overnight, in seconds. */
const DELAY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200];
/** Buckets from a handler that does nearly nothing to a batch of hours, in seconds. */
const DURATION_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200];

/** A registry of prom-client. */
interface MetricsRegistry {
  metrics(): Promise<string>;
}

type Labels = Readonly<Record<string, string>>;

interface MetricOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: never[];
}

/** The module prom-client, as your application imports it. */
export interface PromClient {
  readonly Counter: new (options: MetricOptions) => { inc(labels: Labels, by: number): void };
  readonly Histogram: new (
    options: MetricOptions & { readonly buckets: number[] },
  ) => {
    observe(labels: Labels, seconds: number): void;
    zero(labels: Labels): void;
  };
}

/** Two workers of a process can share a registry, which takes each name once. */
const registered = new WeakMap<MetricsRegistry, ReturnType<typeof register>>();

/**
 * Metrics of a worker, in a registry of prom-client: how long runs waited for it, and how long its attempts took, by queue. Call it before
 * `start`. Several workers of a process can share a registry: their numbers are added up.
 *
 * @example
 * import * as prom from "prom-client";
 * const registry = new prom.Registry();
 * workerMetrics(worker, prom, registry);
 * // In your HTTP server: response.end(await registry.metrics());
 */
export function workerMetrics(worker: Worker, prom: PromClient, registry: MetricsRegistry): void {
  const metrics = registered.get(registry) ?? register(prom, registry);
  registered.set(registry, metrics);
  const { delay, duration, attempts, begun } = metrics;
  // Each series begins with 0, because `rate` ignores the first value.
  for (const queue of worker.queues) {
    for (const outcome of [...OUTCOMES, "retrying"]) attempts.inc({ queue, outcome }, 0);
    if (begun.has(queue)) continue;
    begun.add(queue);
    for (const histogram of [delay, duration]) histogram.zero({ queue });
  }
  worker.on("started", ({ queue, waited }) => {
    if (waited !== undefined) delay.observe({ queue }, waited / 1000);
  });
  worker.on("settled", ({ queue, outcome, ms }) => {
    duration.observe({ queue }, ms / 1000);
    attempts.inc({ queue, outcome }, 1);
  });
  for (const outcome of ["dropped", "cancelled", "crashed"] as const)
    worker.on(outcome, ({ queue }: RunEvent) => attempts.inc({ queue, outcome }, 1));
}

function register({ Counter, Histogram }: PromClient, registry: MetricsRegistry) {
  const registers = [registry as never];
  return {
    delay: new Histogram({
      name: "carillon_start_delay_seconds",
      help: "Time from the commit that enqueued a run to the start of its first attempt in this process, in Redis time.",
      labelNames: ["queue"],
      buckets: DELAY_BUCKETS,
      registers,
    }),
    duration: new Histogram({
      name: "carillon_attempt_duration_seconds",
      help: "Time from the start of an attempt in this process to its recorded end.",
      labelNames: ["queue"],
      buckets: DURATION_BUCKETS,
      registers,
    }),
    attempts: new Counter({
      name: "carillon_attempts_total",
      help: "Attempts that ended in this process, and runs that ended before their handler; retrying: another attempt follows.",
      labelNames: ["queue", "outcome"],
      registers,
    }),
    /** Queues whose histograms have begun. */
    begun: new Set<string>(),
  };
}
