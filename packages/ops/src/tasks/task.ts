import { type TaskInput, taskSchema } from "@carillon/core";
import type { PutResult, Task } from "@carillon/sdk";
import { z } from "zod";
import { as, count, describedBy, outcome, taskName, taskState, time, warning } from "../shapes.js";

const json = z.unknown();
const asked = taskSchema.pick({ id: true, queue: true, type: true, schedule: true });
const policies = taskSchema.omit({ ...asked.keyof().enum, owner: true, enabled: true } as never);

const pause = z
  .object({ at: time, by: z.string().optional(), note: z.string().optional() })
  .meta({ id: "Pause" });

export const task = as<Task>(
  z
    .object({
      ...asked.shape,
      ...policies.partial().shape,
      owner: z.string(),
      state: taskState,
      humanized: z.string(),
      pending: z.array(
        z.object({
          ...{ key: z.string(), nominal: time, due: time, trigger: z.string() },
          payload: json.optional(),
        }),
      ),
      ...{ generation: count, fired: count, created: time, updated: time, revision: z.string() },
      ...z
        .object({
          ...{ nextExecution: time, cursor: time, nominal: time, due: time, paused: pause },
          moving: z.object({ to: z.string().optional(), from: z.string().optional() }),
          lastStatus: z.object({
            run: z.string(),
            ...z
              .object({ executedAt: time, finishedAt: time, node: z.string(), outcome, error: z.string() })
              .partial().shape,
            result: json.optional(),
          }),
          lastChecked: time,
          openRuns: z.object({ queued: count, running: count }),
          displayState: z.enum(["SCHEDULED", "STARTING", "TERMINATING", "DISABLED"]),
          ...{ createdBy: z.string(), updatedBy: z.string() },
        })
        .partial().shape,
    })
    .meta({ id: "Task" }),
);

/** A task as a put takes it. */
export const taskInput = describedBy<TaskInput>(taskSchema, { id: "TaskInput" });

export const putResult = as<PutResult>(
  z
    .object({
      task: taskName,
      outcome: z.enum(["created", "updated", "unchanged"]),
      state: taskState,
      humanized: z.string(),
      nextExecution: time.optional(),
      warnings: z.array(warning),
    })
    .meta({ id: "PutResult" }),
);
