import type { Run } from "@carillon/core";
import { z } from "zod";
import { as, count, outcome, runState, taskName, time } from "../shapes.js";

const text = z.string();
const json = z.unknown();

export const runShape = z
  .object({
    id: text,
    task: taskName,
    type: text,
    state: runState,
    key: text,
    trigger: text,
    node: text,
    nominal: time,
    due: time,
    enqueued: time,
    attempts: count,
    ...z
      .object({
        outcome,
        missed: z.object({ from: time, to: time }),
        cancel: z.object({ at: time, by: text }),
        itemsOf: text,
        by: text,
        trace: text,
        worker: text,
        host: text,
        error: text,
        started: time,
        finished: time,
        notBefore: time,
        lateMs: count,
        waitMs: count,
        maxAttempts: count,
        crashes: count,
        pid: count,
        payload: json,
        checkpoint: json,
        result: json,
      })
      .partial().shape,
  })
  .meta({ id: "Run" });
export const run = as<Run>(runShape);
