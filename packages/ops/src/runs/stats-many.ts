import { listStats, type StatsPage } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, nextPage, taskName, taskState, time } from "../shapes.js";
import { listing } from "../tasks/list.js";
import { statsShape } from "./stats.js";

/** A page takes a few round trips for each queue that it reads, however many tasks it has. */
export const statsMany = operation({
  http: "GET /runs/stats",
  role: "viewer",
  reach: "owner",
  summary: "Lists the statistics of all tasks, or of those that match.",
  input: z.strictObject(listing),
  output: as<StatsPage>(
    z.object({
      tasks: z.array(statsShape.extend({ task: taskName, state: taskState, nextExecution: time.optional() })),
      cursor: nextPage,
    }),
  ),
  run: ({ scope }, input) => listStats(scope, input),
});
