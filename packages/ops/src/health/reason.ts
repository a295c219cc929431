import type { Frozen } from "@carillon/core/internal";
import { z } from "zod";
import { as, count, time } from "../shapes.js";

/* The facts of each reason of the status, by code; their sentences are in core/src/words. */

export const gap = z
  .object({ queue: z.string(), type: z.string(), workers: count })
  .meta({ id: "Gap", description: "A task type that no live worker of its queue handles." });
export const notReady = { why: z.string().optional(), silentMs: count.optional() };
const frozen = z
  .object({
    id: z.string(),
    by: z.string().optional(),
    note: z.string().optional(),
    until: time.optional(),
  })
  .meta({ id: "FrozenBy" });
const jobs = {
  queue: z.string(),
  jobs: count.exactOptional(),
  waitedMs: count,
  workers: count.exactOptional(),
  active: count.exactOptional(),
  longestMs: count.exactOptional(),
};
const pause = z.object({
  at: time.exactOptional(),
  by: z.string().exactOptional(),
  note: z.string().exactOptional(),
});
const concerns = z.object({
  queue: z.string().exactOptional(),
  type: z.string().exactOptional().describe("The task type that no worker handles."),
  owner: z.string().exactOptional().describe("The owner, if the caller is bound to one."),
  since: time.exactOptional(),
  until: time.exactOptional().describe("When it ends by itself, if that is known."),
});

/** A shape for each code of the status. @param more fields that all of them have */
export function reasonShapes<const More extends z.ZodRawShape>(more: More) {
  const all = concerns.extend(more);
  const of = <const Code extends string, const Shape extends z.ZodRawShape>(code: Code, shape: Shape) =>
    all.extend({ code: z.literal(code) }).extend(shape);
  return [
    all.extend({
      code: z.enum([
        "REDIS_UNAVAILABLE",
        "REDIS_AUTH",
        "REDIS_READ_ONLY",
        "REDIS_OUT_OF_MEMORY",
        "REDIS_UNSAFE",
        "REDIS_ERROR",
      ]),
      text: z.string(),
      hint: z.string().optional(),
    }),
    of("EMPTY", {}),
    of("NO_NODE", {}),
    of("NODES_NOT_READY", { nodes: z.array(z.object(notReady)).readonly() }),
    of("CLOCK_WENT_BACK", { until: time, backMs: count }),
    of("FROZEN", {
      scope: z.object({
        owner: z.string().optional(),
        tag: z.string().optional(),
        queue: z.string().optional(),
        all: z.boolean().optional(),
      }),
      frozen: as<Frozen>(frozen),
    }),
    of("QUEUE_PAUSED", { queue: z.string(), pause }),
    of("NO_WORKER", { gap }),
    of("NO_WORKER", { worker: z.string(), queue: z.string(), type: z.string() }),
    of("JOBS_NOT_TAKEN", jobs),
    of("ALERTS_UNDELIVERED", { gap: gap.optional() }),
    of("ALERTS_FAIL", {
      deliveries: count,
      to: z.array(z.string()).readonly(),
      error: z.string().exactOptional(),
    }),
    of("TASK_HELD", { queue: z.string(), held: z.string(), from: z.string(), to: z.string() }),
    of("OVERDUE", { queue: z.string() }),
    of("JOBS_WAIT", jobs),
  ] as const;
}

export const reason = z.union(reasonShapes({})).meta({ id: "StatusReason" });
