import { OUTCOMES } from "@carillon/core";
import { frozenShape, pauseShape, SKIP_REASONS } from "@carillon/core/internal";
import { z } from "zod";
import { runShape } from "../runs/run.js";
import { count, taskName, time } from "../shapes.js";

/* The facts of an explanation: `words/explanation.ts` makes sentences of them. */

const text = z.string();
const outcome = z.enum(OUTCOMES);
const reason = z.enum(SKIP_REASONS).or(text).describe("As in `runs.skips`.");

const hold = z
  .discriminatedUnion("code", [
    pauseShape.extend({ code: z.literal("queue-paused") }),
    z.object({ code: z.literal("no-worker"), queue: text, type: text, workers: count }),
  ])
  .describe("Reason why no worker takes a run that waits: this one, or the one in its way.");

export const run = runShape
  .pick({
    ...{ id: true, trigger: true, nominal: true, due: true, enqueued: true, state: true, attempts: true },
    ...{ outcome: true, started: true, finished: true, worker: true, host: true, pid: true },
  })
  .extend({ error: text.optional().describe("Its first line.") })
  .meta({ id: "ExplainedRun" });
export type ExplainedRun = z.output<typeof run>;

const event = z
  .object({
    code: z.enum([
      "enqueued",
      "attempt",
      "cancelled",
      "crashes",
      "ended",
      "crash-wait",
      "waited",
      "skipped",
      "retry-superseded",
      "pending",
    ]),
    at: time.optional().describe("Missing: it has not happened yet, or its time is not recorded."),
    run: text.optional(),
    by: text.optional().describe("The node, client, worker or person that did it."),
    host: text.optional().describe("Host of that process, as far as it is known."),
    pid: count.optional(),
    trigger: text.optional(),
    lateMs: z.number().optional().describe("From due to enqueued."),
    for: text.optional().describe("The name of the requester."),
    attempt: count.optional(),
    crashes: count.optional().describe("Number of attempts that lost their worker."),
    outcome: outcome.optional(),
    error: text.optional().describe("Its first line."),
    reason: reason.optional(),
    note: text.optional(),
    from: time.optional().describe("First nominal time that it stands for, if there are several."),
    to: time.optional(),
    until: time.optional().describe("End of the wait."),
    paused: z.boolean().optional().describe("It waits until its task is resumed, too."),
    other: run.optional().describe("The run in its way."),
  })
  .meta({ id: "ExplainedEvent" });
export type ExplainedEvent = z.output<typeof event>;

const why = z
  .object({
    code: z.enum([
      "ran",
      "retry-superseded",
      "skipped",
      "frozen",
      "pending",
      "owner-full",
      "no-node",
      "not-claimed",
      "planned",
      "moving",
      "paused",
      "excluded",
      "beyond-max-runs",
      "not-scheduled",
      "put-later",
      "forgotten",
      "passed-over",
    ]),
    at: time.optional().describe("Of the pause, or of the put."),
    due: time.optional(),
    until: time.optional(),
    by: text.optional().describe("The exclusion that removes the time."),
    for: text.optional().describe("The name of the requester."),
    calendar: z.boolean().optional().describe("Whether `by` is a shared calendar."),
    trigger: text.optional(),
    reason: reason.optional(),
    note: text.optional(),
    held: count.optional().describe("Runs of its owner, as many as it may have."),
    isBounded: z.boolean().optional().describe("`maxRuns` may be reached before."),
    frozen: frozenShape.optional(),
  })
  .meta({ id: "ExplainedReason" });
export type ExplainedReason = z.output<typeof why>;

export const explanation = z
  .object({
    task: taskName,
    time: time.describe("The nominal time asked for."),
    now: time.describe("Redis time."),
    timezone: text
      .optional()
      .describe("The zone on whose clock the times of the schedule are, if it is one."),
    verdict: z.enum([
      "enqueued",
      "skipped",
      "waiting",
      "due",
      "planned",
      "held",
      "no-occurrence",
      "before-task",
      "expired",
    ]),
    why,
    events: z.array(event).describe("Each recorded decision, attempt and end, in order."),
    run: run.optional().describe("Its last run."),
    runs: count.describe("Number of its runs."),
    printed: count.optional().describe("Lines that its last run printed."),
    hold: hold.optional(),
    nearest: z
      .object({ before: time.optional(), after: time.optional() })
      .optional()
      .describe("The occurrences before and after, if `time` is not one."),
    nodes: count.describe("Scheduler nodes that are alive."),
  })
  .meta({ id: "Explanation" });
export type Explanation = z.output<typeof explanation>;
