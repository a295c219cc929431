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
