import { OUTCOMES, TASK_STATES } from "@carillon/core";
import { countByFilter } from "@carillon/sdk/internal";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { count } from "../shapes.js";

const { queue, owner, tag, deliveries } = conditions;

export const countTasks = operation({
  http: "GET /tasks/counts",
  role: "viewer",
  reach: "owner",
  summary:
    "Counts the tasks that each filter of `tasks.list` finds: by state, by outcome of the last run, failing, overdue, never ran.",
  input: z.strictObject({ queue, owner, tag, deliveries }),
  output: z.object({
    all: count,
    states: z.record(z.enum(TASK_STATES), count),
    outcomes: z.record(z.enum(OUTCOMES), count),
    failing: count,
    overdue: count,
    neverRan: count,
  }),
  run: ({ scope }, input) => countByFilter(scope, input),
});
