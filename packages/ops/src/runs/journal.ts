import type { Client, JournalFilter, JournalPage } from "@carillon/sdk";
import { z } from "zod";
import { conditions } from "../conditions.js";
import { operation } from "../operation.js";
import { duration, given, instant, nextPage, oneOf, page } from "../shapes.js";
import { run } from "./run.js";

export const journal = operation({
  http: "GET /runs/journal",
  role: "viewer",
  reach: "owner",
  summary: "Lists final runs of all queues by their end, newest first; or the slowest.",
  input: z.strictObject({
    task: given.optional().describe("`id` or `owner/id`."),
    owner: given.optional().describe("Of the task."),
    queue: given.optional(),
    text: given.optional().describe("In the task's name, its type or the error."),
    took: duration.optional().describe("Least time from start to end: `30s`."),
    sort: oneOf(["end", "took"])
      .optional()
      .describe(
        "`took`: slowest first, one page; refused if more than 50,000 runs of all owners ended in the range. Default: end.",
      ),
    outcome: conditions.outcome.describe("One, or several."),
    node: given.optional().describe("The node that enqueued it, or the worker that ran it."),
    from: instant.optional().describe("The end of the run, both included."),
    to: instant.optional(),
    ...page,
  }),
  output: z.object({ runs: z.array(run), cursor: nextPage }),
  run: ({ client }, input) => readJournal(client, input),
});

export function readJournal(
  client: Client,
  { task: id, ...filter }: Omit<JournalFilter, "took"> & { task?: string | undefined; took?: unknown },
): Promise<JournalPage> {
  const { queue, owner } = filter;
  const ref = owner === undefined && queue === undefined ? id : { id: id ?? "", owner, queue };
  return client.runs.journal({ ...filter, task: id === undefined ? undefined : ref } as JournalFilter);
}
