import type { TaskDefinition } from "@carillon/core";
import type { Enqueue } from "@carillon/core/internal";
import { invalid } from "@carillon/core/internal";

export interface ClaimSpan {
  /** Its context, as a W3C `traceparent`; undefined: the process traces nothing. */
  readonly trace: string | undefined;
  /** @param at time of the commit, UTC ms */
  end(run: string, at: number): void;
}

/** Part of `openTelemetry()` that nodes use. */
export interface ClaimTracer {
  /** @param since time from which nothing blocked the occurrence, UTC ms: the span begins there, so its length is the node's lateness */
  claim(task: TaskDefinition, occurrence: Pick<Enqueue, "trigger" | "trace">, since: number): ClaimSpan;
}

/** @throws `INVALID_OPTION` */
export function assertTelemetry(telemetry: ClaimTracer | undefined): void {
  if (telemetry === undefined || typeof telemetry?.claim === "function") return;
  throw invalid(
    "telemetry",
    "not made by openTelemetry().",
    'Give openTelemetry() of "@carillon/sdk/otel". BullMQOtel is for plain BullMQ workers.',
  );
}
