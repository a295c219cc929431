import { ERROR_CODES } from "@carillon/sdk/internal";
import { z } from "zod";

/** Shapes of the API's answers, for its OpenAPI document. Objects may have more fields; `id` names a schema in the document. */
const text = z.string();
const count = z.number().meta({ type: "integer" });
const time = z.number().meta({ id: "Time", type: "integer", description: "UTC milliseconds." });
const list = z.array;

/** An object with fields that are always there, and others that may be missing. */
function object(always: z.ZodRawShape, maybe: z.ZodRawShape = {}) {
  return z.object({ ...always, ...z.object(maybe).partial().shape });
}

const pause = object({}, { at: time, by: text, note: text }).meta({ id: "Pause" });
const taskName = object({ queue: text, owner: text, id: text }).meta({ id: "TaskName" });
export const ERROR = object({
  error: object({ code: z.enum(ERROR_CODES), message: text }, { field: text, remedy: text }),
}).meta({ id: "Error" });

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
