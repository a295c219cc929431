import type { Occurrence } from "@carillon/core";
import type { ClaimTracer } from "@carillon/store";
import type { Middleware } from "./worker/middleware.js";

/** Tasks or runs that a call sends to a queue. `count`: more than one. */
interface Sent {
  readonly queue: string;
  readonly owner?: string;
  readonly id?: string;
  readonly type?: string;
  readonly count?: number;
}

/** W3C contexts of the spans of attempts that run here. */
export const spans = new WeakMap<Occurrence, string>();

/** The W3C context that a request of an attempt goes on with: its span, or else the one that enqueued the run. */
export function traceparentOf(occurrence: Occurrence): string | undefined {
  const trace = spans.get(occurrence) ?? occurrence.trace;
  return /^00-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(trace ?? "") ? trace : undefined;
}

/** Option of `Client`, `Worker` and `Scheduler`: `openTelemetry()` of `@carillon/sdk/otel` makes it. */
export interface Telemetry extends ClaimTracer {
  /** Around each attempt. */
  readonly attempt: Middleware;
  /** Does work in a span of a producer, and gives it the span's context. */
  produce<T>(
    operation: "put" | "trigger" | "enqueue",
    sent: Sent,
    work: (trace: string | undefined) => Promise<T>,
  ): Promise<T>;
}
