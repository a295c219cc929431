import { type TaskInput, taskSchema } from "@carillon/core";
import { displayShape } from "@carillon/core/internal";
import type { Preview, PutResult, Task } from "@carillon/sdk";
import { z } from "zod";
import { as, count, describedBy, outcome, pause, taskName, taskState, time, warning } from "../shapes.js";

const json = z.unknown();
const asked = taskSchema.pick({ id: true, queue: true, type: true, schedule: true });
const policies = taskSchema.omit({ ...asked.keyof().enum, owner: true, enabled: true } as never);

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
          key: z.string(),
          nominal: time,
          due: time,
          trigger: z.string(),
          payload: json.optional(),
        }),
      ),
      generation: count,
      fired: count,
      created: time,
      updated: time,
      revision: z.string(),
      ...z
        .object({
          nextExecution: time,
          cursor: time,
          nominal: time,
          due: time,
          paused: pause,
          set: z.object({
            name: z.string(),
            filed: z.string().optional(),
            drift: z.object({ by: z.string().optional(), at: time }).optional(),
          }),
          timezone: z.string(),
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
          display: displayShape,
          createdBy: z.string(),
          updatedBy: z.string(),
        })
        .partial().shape,
    })
    .meta({ id: "Task" }),
);

/** A task as a put takes it. */
export const taskInput = describedBy<TaskInput>(taskSchema, { id: "TaskInput" });

export const putOutcome = z.enum(["created", "updated", "unchanged"]);
const slots = z.array(z.object({ nominal: time, due: time })).readonly();
const range = z.object({ from: time, to: time });
const fields = z.record(z.string(), z.unknown());

/** The differences that a put would make. */
export const preview = as<Preview>(
  z
    .object({
      before: fields.optional().describe("Fields that differ, as they are stored."),
      after: fields.optional().describe("The same, as they would be."),
      times: z.object({ before: slots, after: slots }).describe("The next five times."),
      givenUp: range.optional().describe("Owed times that another schedule gives up."),
    })
    .meta({ id: "PutPreview" }),
);

export const putResult = as<PutResult>(
  z
    .object({
      task: taskName,
      outcome: putOutcome,
      state: taskState,
      humanized: z.string(),
      nextExecution: time.optional(),
      warnings: z.array(warning),
      preview: preview.optional().describe("With `dryRun`."),
    })
    .meta({ id: "PutResult" }),
);
