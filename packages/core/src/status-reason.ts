import { z } from "zod";
import { REDIS_CODES } from "./errors.js";
import type { FreezeScope, Frozen } from "./freeze.js";
import { count, time } from "./shapes.js";

/* The facts of each reason of the status, by code: `words/reasons.ts` makes sentences of them. */

const text = z.string();

export const gapShape = z
  .object({ queue: text, type: text, workers: count })
  .meta({ id: "Gap", description: "A task type that no live worker of its queue handles." });
/** A task type that no live worker of its queue handles. `workers`: number of live workers of the queue. */
export type Gap = Readonly<z.output<typeof gapShape>>;
/** A task type in a queue. */
export type Work = Pick<Gap, "queue" | "type">;

/** Reason why a node does not claim: its own, or the time in ms since its last heartbeat; negative: the clock of Redis went back. */
export const notReadyFields = { why: text.optional(), silentMs: count.optional() };
export type NotReady = Readonly<z.output<z.ZodObject<typeof notReadyFields>>>;

export const limitShape = z
  .object({
    runs: count
      .exactOptional()
      .describe("Most jobs at a time, over all workers: BullMQ's global concurrency."),
    rate: z
      .object({ jobs: count, ms: count })
      .exactOptional()
      .describe("Most jobs that start within a period. A rate that is an option of workers is not stored."),
    holds: z.enum(["runs", "rate"]).exactOptional().describe("The limit that holds jobs back now."),
  })
  .meta({ id: "QueueLimit" });
export type QueueLimit = Readonly<z.output<typeof limitShape>>;

const waitingFields = {
  queue: text,
  jobs: count.exactOptional().describe("Number of jobs that wait."),
  waitedMs: count.describe("Age of the oldest run that waits for its first attempt."),
  workers: count.exactOptional().describe("Connected workers of the queue."),
  active: count.exactOptional().describe("Jobs that they hold."),
  longestMs: count
    .exactOptional()
    .describe("Time since the start of the run that has been under way longest."),
  limit: limitShape.exactOptional().describe("The limit that holds them, if one does."),
};
/** Jobs of a queue that wait for longer than they should. Numbers that are not known, or not the reader's, are absent. */
export type WaitingJobs = Readonly<z.output<z.ZodObject<typeof waitingFields>>>;

export const dueOwnerShape = z
  .object({
    owner: text,
    tasks: count.describe("Number of its tasks that are due, of those that were read."),
    read: count.describe(
      "Number of due tasks that were read, the oldest of each shard: all, unless there are very many.",
    ),
    due: count.describe("Number of tasks of the queue that are due."),
  })
  .meta({ id: "DueOwner", description: "The owner with most of what is due in a queue." });
export type DueOwner = Readonly<z.output<typeof dueOwnerShape>>;

export const pauseShape = z.object({
  at: time.exactOptional(),
  by: text.exactOptional(),
  note: text.exactOptional(),
});
/** Author, time (UTC ms) and reason of a pause, as far as they are recorded. */
export type PauseFacts = Readonly<z.output<typeof pauseShape>>;

export const frozenShape = z
  .object({ id: text, by: text.optional(), note: text.optional(), until: time.optional() })
  .meta({ id: "FrozenBy" }) as unknown as z.ZodType<Frozen, Frozen>;
/** A silence of all alerts. */
const silencedShape = z.object({
  id: text,
  by: text.exactOptional(),
  note: text.exactOptional(),
});
const scopeShape = z.object({
  owner: text.optional(),
  tag: text.optional(),
  queue: text.optional(),
  all: z.boolean().optional(),
}) as unknown as z.ZodType<FreezeScope, FreezeScope>;

const concerned = z.object({
  queue: text.exactOptional(),
  type: text.exactOptional().describe("The task type that no worker handles."),
  owner: text.exactOptional().describe("The owner, if the caller is bound to one."),
  since: time.exactOptional(),
  until: time.exactOptional().describe("When it ends by itself, if that is known."),
});

/** A shape for each code of the status, most severe first. @param more fields that all of them have */
export function reasonShapes<const More extends z.ZodRawShape>(more: More) {
  const all = concerned.extend(more);
  const of = <const Code extends string, const Shape extends z.ZodRawShape>(code: Code, shape: Shape) =>
    all.extend({ code: z.literal(code) }).extend(shape);
  return [
    all.extend({ code: z.enum(REDIS_CODES), text, hint: text.optional() }),
    // The namespace has no task, and Redis lost writes under its nodes.
    of("EMPTY", {}),
    of("NO_NODE", {}),
    of("NODES_NOT_READY", { nodes: z.array(z.object(notReadyFields)).readonly() }),
    // Occurrences until then were decided before; none is decided again.
    of("CLOCK_WENT_BACK", { until: time, backMs: count }),
    // Settings of Redis that changed under its nodes.
    of("AOF_OFF", {}),
    of("EVICTION", { policy: text }),
    // Several nodes that are alive have one id.
    of("SAME_NODE_ID", {
      node: text,
      processes: z.array(z.object({ host: text, pid: count })).readonly(),
    }),
    of("FROZEN", { scope: scopeShape, frozen: frozenShape }),
    of("SILENCED", { silence: silencedShape, until: time }),
    of("QUEUE_PAUSED", { queue: text, pause: pauseShape }),
    of("NO_WORKER", { gap: gapShape }),
    // A worker takes runs of a type that it does not have, and fails them.
    of("NO_WORKER", { worker: text, queue: text, type: text }),
    of("JOBS_NOT_TAKEN", waitingFields),
    of("ALERTS_UNDELIVERED", { gap: gapShape.optional() }),
    // Most of the newest runs of these queues failed.
    of("RUNS_FAIL", {
      queues: z.array(text).readonly(),
      failed: count,
      ended: count.describe("Number of runs that were looked at: of each queue at most 100, of 15 minutes."),
      cause: z
        .object({ id: text, runs: count, error: text })
        .describe("That most of them have, as `runs.failures` groups them."),
    }),
    // Deliveries that failed, or wait for another try, and some of their hosts and addresses.
    of("ALERTS_FAIL", { deliveries: count, to: z.array(text).readonly(), error: text.exactOptional() }),
    // A move that was interrupted, or waits for runs. `held`: owner and id.
    of("TASK_HELD", { queue: text, held: text, from: text, to: text }),
    of("OVERDUE", { queue: text, most: dueOwnerShape.exactOptional() }),
    of("JOBS_WAIT", waitingFields),
    // No run hangs: a limit of BullMQ's holds them.
    of("JOBS_LIMITED", waitingFields),
  ] as const;
}

export const statusReason = z.union(reasonShapes({})).meta({ id: "StatusReason" });
/** The facts of one reason why a namespace is not on time, or of a note beside them. Times in UTC ms of Redis time. */
export type StatusReasonFacts = z.output<typeof statusReason>;

/** Reasons why a namespace is not on time, most severe first; the codes of Redis errors come before all others. */
export type StatusCode = StatusReasonFacts["code"];

/** A setting of Redis with which it may lose tasks, or one that it does not show. */
export type UnsafeSetting =
  | { readonly code: "UNKNOWN_SETTINGS"; readonly settings: readonly string[] }
  | { readonly code: "AOF_OFF" }
  | { readonly code: "EVICTION"; readonly policy: string };
