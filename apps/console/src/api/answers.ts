import { ALERT_KINDS, ERROR_CODES, ITEM_STATES, OUTCOMES, TASK_STATES } from "@carillon/sdk/internal";
import { taskSchema } from "@carillon/sdk/schedule";
import { z } from "zod";

/** Shapes of the API's answers, for its OpenAPI document. Objects may have more fields; `id` names a schema in the document. */
const text = z.string();
const flag = z.boolean();
const json = z.unknown();
const count = z.number().meta({ type: "integer" });
const time = z.number().meta({ id: "Time", type: "integer", description: "UTC milliseconds." });
const list = z.array;

/** An object with fields that are always there, and others that may be missing. */
function object(always: z.ZodRawShape, maybe: z.ZodRawShape = {}) {
  return z.object({ ...always, ...z.object(maybe).partial().shape });
}

const outcome = z.enum(OUTCOMES).meta({ id: "Outcome" });
const outcomes = z.partialRecord(z.enum(OUTCOMES), count).meta({ id: "Outcomes" });
const taskState = z.enum(TASK_STATES).meta({ id: "TaskState" });
const runState = z.enum(["queued", "running", "terminating", "final"]).meta({ id: "RunState" });
const alertKind = z.enum(ALERT_KINDS).meta({ id: "AlertKind" });
const range = object({ from: time, to: time });
const pause = object({}, { at: time, by: text, note: text }).meta({ id: "Pause" });
const taskName = object({ queue: text, owner: text, id: text }).meta({ id: "TaskName" });
const warnings = list(object({ code: text, message: text, remedy: text }).meta({ id: "Warning" }));
const page = { cursor: text };

export const ERROR = object({
  error: object({ code: z.enum(ERROR_CODES), message: text }, { field: text, remedy: text }),
}).meta({ id: "Error" });

/** A task as a put takes it: the client checks it. */
export const TASK_INPUT = taskSchema.meta({ id: "TaskInput" });
/** The same in a path that names the task. */
export const NAMED_TASK_INPUT = taskSchema.partial({ queue: true, owner: true, id: true });

export const TASK = object(
  {
    ...taskSchema.pick({ id: true, queue: true, type: true, schedule: true }).shape,
    owner: text,
    state: taskState,
    humanized: text,
    pending: list(object({ key: text, nominal: time, due: time, trigger: text }, { payload: json })),
    generation: count,
    fired: count,
    created: time,
    updated: time,
  },
  {
    ...taskSchema.omit({ id: true, queue: true, type: true, schedule: true, owner: true, enabled: true })
      .shape,
    nextExecution: time,
    cursor: time,
    nominal: time,
    due: time,
    revision: text,
    paused: pause,
    lastStatus: object(
      { run: text },
      { executedAt: time, finishedAt: time, node: text, outcome, error: text, result: json },
    ),
    lastChecked: time,
    openRuns: object({ queued: count, running: count }),
    displayState: z.enum(["SCHEDULED", "STARTING", "TERMINATING", "DISABLED"]),
    createdBy: text,
    updatedBy: text,
  },
).meta({ id: "Task" });
export const TASKS = object({ tasks: list(TASK) }, { ...page, unreadable: list(taskName) });
export const COUNTS = object({
  all: count,
  states: z.partialRecord(z.enum(TASK_STATES), count),
  outcomes,
  ...{ failing: count, overdue: count, neverRan: count },
});
const putOutcome = z.enum(["created", "updated", "unchanged"]);
export const PUT = object(
  { task: taskName, outcome: putOutcome, state: taskState, humanized: text, warnings },
  { nextExecution: time },
).meta({ id: "PutResult" });
export const REVISIONS = object({
  revisions: list(
    object(
      { number: count, until: time, definition: TASK_INPUT },
      { by: text, deleted: z.enum(TASK_STATES) },
    ),
  ),
});
export const MOVED = object({ task: taskName, changed: flag });
export const CHANGED = object({ changed: flag });
export const TRIGGERED = object(
  { outcome: z.enum(["enqueued", "queued"]), key: text, repeated: flag, warnings },
  { run: text, enqueued: time },
);

const RUN = object(
  {
    ...{ id: text, task: taskName, type: text, state: runState, key: text, trigger: text, node: text },
    ...{ nominal: time, due: time, enqueued: time, attempts: count },
  },
  {
    outcome,
    missed: range,
    cancel: object({ at: time, by: text }),
    ...{ itemsOf: text, by: text, worker: text, host: text, error: text },
    ...{ started: time, finished: time, notBefore: time },
    ...{ lateMs: count, waitMs: count, maxAttempts: count, crashes: count, pid: count },
    ...{ payload: json, checkpoint: json, result: json },
  },
).meta({ id: "Run" });
export const RUNS = object({ runs: list(RUN) }, page);
export const RUNNING = object({
  runs: list(RUN.extend({ runningMs: count, usualMs: count.optional() })),
});
const percentiles = object({ p50: count, p95: count, p99: count, max: count });
export const SUMMARY = object(
  { from: time, to: time, ended: count, read: count, outcomes },
  { lateMs: percentiles, waitMs: percentiles, durationMs: percentiles },
);
export const RUN_DETAILS = RUN.extend({
  attemptList: list(object({ attempt: count, started: time, worker: text, pid: count, host: text })),
  output: list(object({ attempt: count, text, cut: flag })),
});
export const ITEMS = object(
  {
    items: list(
      object(
        {
          ...{ index: count, status: z.enum(ITEM_STATES), data: json },
          ...{ planned: time, attempts: count, maxAttempts: count },
        },
        {
          ...{ started: time, finished: time, worker: text, pid: count, crashes: count },
          ...{ result: json, output: text, error: text },
        },
      ),
    ),
  },
  page,
);
export const RETRIED_ITEMS = object({ run: text, enqueued: time });
export const LEDGER = object({
  ledger: list(
    object(
      { reason: text, from: time, to: time, decisions: count, at: time, by: text },
      { run: text, note: text },
    ),
  ),
});

const stats = object(
  {
    ...{ runs: count, outcomes, open: count, successes: count, failures: count, attempts: count },
    ...{ consecutiveFailures: count, crashes: count, consecutiveCrashes: count, incidents: list(alertKind) },
    ...{ successMs: z.number(), failureMs: z.number() },
  },
  {
    ...{ successRate: z.number() },
    ...{ lastStart: time, lastFinish: time, lastSuccess: time, lastChecked: time },
    ...{ lastOutcome: outcome, lastRun: text },
    ...{ lastMs: z.number(), lastLateMs: z.number(), lastWaitMs: z.number(), usualMs: z.number() },
  },
).meta({ id: "Stats" });
export const STATS = stats;
export const STATS_OF_ALL = object(
  { tasks: list(stats.extend({ task: taskName, state: taskState, nextExecution: time.optional() })) },
  page,
);
export const VALIDATED = object({
  ...{ schedule: taskSchema.shape.schedule, canonical: text, humanized: text, warnings, timezone: text },
  next: list(object({ nominal: time, notes: list(object({ code: text, text })) }, { due: time })),
  excluded: list(object({ nominal: time, by: text })),
  exhausted: flag,
});
export const ME = object(
  {
    ...{ name: text, role: z.enum(["viewer", "operator", "admin"]) },
    ...{ namespace: text, version: text, now: time, signsIn: z.boolean() },
  },
  { owners: list(text), bullBoard: text },
);
const queueState = { paused: pause, waiting: count, active: count, oldestWaitingMs: count, workers: count };
const reason = object(
  { code: text, message: text, remedy: text },
  { queue: text, type: text, owner: text, since: time, until: time },
);
export const STATUS = object(
  {
    ...{ state: z.enum(["on-time", "behind", "stopped"]), behind: count },
    ...{ reasons: list(reason), notes: list(reason) },
    queues: list(object({ name: text, behind: count }, queueState)),
    nodes: object({ alive: count, ready: count }),
    workers: object({ alive: count }),
  },
  { since: time, at: time },
);
export const DIAGNOSIS = object({
  state: z.enum(["healthy", "warnings", "errors"]),
  findings: list(
    object(
      { code: text, severity: z.enum(["error", "warning"]), message: text, remedy: text },
      { queue: text, task: taskName },
    ),
  ),
  tasks: object({ read: count, of: count }),
  skipped: list(text),
});
