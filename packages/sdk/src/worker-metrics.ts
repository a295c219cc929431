import { OUTCOMES } from "@carillon/core";
import type { RunEvent } from "./worker/options.js";
import type { Worker } from "./worker.js";

/** Buckets from a job that a free worker takes at once to one that waits overnight, in seconds. */
const DELAY_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200];
/** Buckets from a handler that does nearly nothing to a batch of hours, in seconds. */
const DURATION_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200];

/** A registry of prom-client. */
export interface MetricsRegistry {
  registerMetric(metric: { get(): Promise<unknown> }): void;
}

type Labels = Readonly<Record<string, string | number>>;
interface Value {
  readonly labels: Labels;
  readonly value: number;
  readonly metricName?: string;
}

/** Two workers of a process can share a registry, which takes each name once. */
const registered = new WeakMap<MetricsRegistry, ReturnType<typeof register>>();

/**
 * Metrics of a worker, in a registry of prom-client: how long runs waited for it, and how long its attempts took, by queue. Call it before
 * `start`. Several workers of a process can share a registry: their numbers are added up.
 *
 * @example
 * import { Registry } from "prom-client";
 * const registry = new Registry();
 * workerMetrics(worker, registry);
 * // In your HTTP server: response.end(await registry.metrics());
 */
export function workerMetrics(worker: Worker, registry: MetricsRegistry): void {
  const metrics = registered.get(registry) ?? register(registry);
  registered.set(registry, metrics);
  // Each series begins with 0, because `rate` ignores the first value.
  for (const queue of worker.queues) {
    metrics.delay.of(queue);
    metrics.duration.of(queue);
    for (const outcome of [...OUTCOMES, "retrying"]) metrics.attempts.add({ queue, outcome }, 0);
  }
  worker.on("started", ({ queue, waited }) => {
    if (waited !== undefined) metrics.delay.of(queue).observe(waited / 1000);
  });
  worker.on("settled", ({ queue, outcome, ms }) => {
    metrics.duration.of(queue).observe(ms / 1000);
    metrics.attempts.add({ queue, outcome }, 1);
  });
  for (const outcome of ["dropped", "cancelled", "crashed"] as const) {
    worker.on(outcome, ({ queue }: RunEvent) => metrics.attempts.add({ queue, outcome }, 1));
  }
}

function register(registry: MetricsRegistry) {
  const delay = new Histograms(
    "carillon_start_delay_seconds",
    "Time from the commit that enqueued a run to the start of its first attempt in this process, in Redis time.",
    DELAY_BUCKETS,
  );
  const duration = new Histograms(
    "carillon_attempt_duration_seconds",
    "Time from the start of an attempt in this process to its recorded end.",
    DURATION_BUCKETS,
  );
  const attempts = new Counters(
    "carillon_attempts_total",
    "Attempts that ended in this process, and runs that ended before their handler; retrying: another attempt follows.",
  );
  for (const metric of [delay, duration, attempts]) registry.registerMetric(metric);
  return { delay, duration, attempts };
}

/** Members that a registry of prom-client expects of a metric. */
abstract class Metric {
  readonly aggregator = "sum";
  abstract readonly type: string;

  constructor(
    readonly name: string,
    readonly help: string,
  ) {}

  protected abstract values(): Value[];
  abstract reset(): void;

  async get() {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: this.values() };
  }
}

class Counters extends Metric {
  readonly type = "counter";
  readonly #counts = new Map<string, { labels: Labels; value: number }>();

  add(labels: Labels, by: number): void {
    const key = Object.values(labels).join(" ");
    const known = this.#counts.get(key);
    if (known) known.value += by;
    else this.#counts.set(key, { labels, value: by });
  }

  protected values(): Value[] {
    return [...this.#counts.values()];
  }

  reset(): void {
    for (const one of this.#counts.values()) one.value = 0;
  }
}

/** A histogram for each queue. */
class Histograms extends Metric {
  readonly type = "histogram";
  readonly #bounds: readonly number[];
  readonly #queues = new Map<string, Histogram>();

  constructor(name: string, help: string, bounds: readonly number[]) {
    super(name, help);
    this.#bounds = bounds;
  }

  of(queue: string): Histogram {
    const known = this.#queues.get(queue);
    if (known) return known;
    const histogram = new Histogram(this.#bounds);
    this.#queues.set(queue, histogram);
    return histogram;
  }

  protected values(): Value[] {
    return [...this.#queues].flatMap(([queue, { counts, sum }]) => {
      let value = 0;
      const buckets = [...this.#bounds, "+Inf"].map((le, i): Value => {
        value += counts[i] as number;
        return { metricName: `${this.name}_bucket`, labels: { le, queue }, value };
      });
      const labels = { queue };
      return [
        ...buckets,
        { metricName: `${this.name}_sum`, labels, value: sum },
        { metricName: `${this.name}_count`, labels, value },
      ];
    });
  }

  reset(): void {
    for (const histogram of this.#queues.values()) histogram.reset();
  }
}

class Histogram {
  /** By bucket, the last one without a bound; not cumulative. */
  readonly counts: number[];
  sum = 0;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = [...bounds, 0].map(() => 0);
  }

  observe(seconds: number): void {
    const bucket = this.#bounds.findIndex((bound) => seconds <= bound);
    const i = bucket < 0 ? this.#bounds.length : bucket;
    this.counts[i] = (this.counts[i] as number) + 1;
    this.sum += seconds;
  }

  reset(): void {
    this.counts.fill(0);
    this.sum = 0;
  }
}
