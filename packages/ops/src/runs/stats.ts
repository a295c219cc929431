import { ALERT_KINDS, OUTCOMES } from "@carillon/core";
import type { TaskStats } from "@carillon/sdk";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, outcome, refOf, taskRef, time } from "../shapes.js";

const ms = z.number();
export const statsShape = z
  .object({
    runs: count,
    outcomes: z.partialRecord(z.enum(OUTCOMES), count),
    open: count,
    successes: count,
    failures: count,
    attempts: count,
    consecutiveFailures: count,
    crashes: count,
    consecutiveCrashes: count,
    incidents: z.array(z.enum(ALERT_KINDS)),
    successMs: ms,
    failureMs: ms,
    ...z
      .object({
        successRate: z.number(),
        lastStart: time,
        lastFinish: time,
        lastSuccess: time,
        lastChecked: time,
        lastOutcome: outcome,
        lastRun: z.string(),
        lastMs: ms,
        lastLateMs: ms,
        lastWaitMs: ms,
        usualMs: ms,
      })
      .partial().shape,
  })
  .meta({ id: "Stats" });

export const stats = operation({
  http: "GET /tasks/:queue/:owner/:id/stats",
  role: "viewer",
  reach: "owner",
  summary: "Reads the statistics of a task's runs.",
  input: z.strictObject(taskRef),
  output: as<TaskStats>(statsShape),
  run: ({ client }, input) => client.runs.stats(refOf(input)),
});
