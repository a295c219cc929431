import { invalid } from "@carillon/core/internal";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { given, instant, nextPage, page } from "../shapes.js";
import { run } from "./run.js";

export const journal = operation({
  http: "GET /journal",
  role: "viewer",
  reach: "owner",
  summary: "Lists final runs of all queues by their end, newest first.",
  input: z.strictObject({
    task: given.optional().describe("`id` or `owner/id`."),
    owner: given.optional().describe("Of the task."),
    queue: given.optional(),
    outcome: conditions.outcome.describe("One, or several."),
    node: given.optional().describe("The node that enqueued it, or the worker that ran it."),
    from: instant.optional().describe("The end of the run, both included."),
    to: instant.optional(),
    ...page,
  }),
  output: z.object({ runs: z.array(run), cursor: nextPage }),
  run({ client }, { task: id, owner, ...filter }) {
    if (id === undefined && owner !== undefined)
      throw invalid("owner", "given without task.", "Give the task's id as well.");
    const { queue } = filter;
    const ref = owner === undefined && queue === undefined ? id : { id: id ?? "", owner, queue };
    return client.runs.journal({ ...filter, task: id === undefined ? undefined : ref });
  },
});
