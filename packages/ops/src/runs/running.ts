import type { RunningRun } from "@carillon/sdk";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { as, count, given, page } from "../shapes.js";
import { journal, taskOf } from "./journal.js";
import { runShape } from "./run.js";

export const runningRuns = operation({
  http: "GET /runs/running",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the runs that workers have under way now, longest first: how long each runs, and the usual duration of its task, the mean of its runs that succeeded. A run whose worker died stays listed until BullMQ notices.",
  input: z.strictObject({
    task: journal.input.shape.task,
    owner: conditions.owner,
    queue: conditions.queue,
    text: given.optional().describe("With this in the task's name or its type."),
    limit: page.limit,
  }),
  output: as<{ runs: RunningRun[] }>(
    z.object({
      runs: z.array(
        runShape.extend({
          runningMs: count.describe("Time since its start."),
          usualMs: count.optional().describe("Mean duration of its task's successful runs."),
        }),
      ),
    }),
  ),
  async run({ client }, { task, ...filter }) {
    return { runs: await client.runs.running({ ...filter, task: taskOf(task, filter) }) };
  },
});
