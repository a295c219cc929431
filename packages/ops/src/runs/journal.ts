import type { Client, JournalFilter, JournalPage, TaskRef } from "@carillon/sdk";
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
    task: given.optional().describe("Of this task: `id` or `owner/id`."),
    owner: conditions.owner,
    queue: conditions.queue,
    text: given.optional().describe("With this in the task's name, its type or the error."),
    took: duration.optional().describe("That took at least this, from start to end: `30s`."),
    sort: oneOf(["end", "took"])
      .optional()
      .describe(
        "`took`: slowest first, one page; refused if more than 50,000 runs of all owners ended in the range. Default: end.",
      ),
    outcome: conditions.outcome.describe("That had this outcome."),
    node: given.optional().describe("That this node enqueued, or this worker ran."),
    from: instant.optional().describe("That ended then or later."),
    to: instant.optional().describe("That ended then or before."),
    ...page,
  }),
  output: z.object({ runs: z.array(run), cursor: nextPage }),
  run: ({ client }, input) => readJournal(client, input),
});

export function readJournal(
  client: Client,
  { task: id, ...filter }: Omit<JournalFilter, "took"> & { task?: string | undefined; took?: unknown },
): Promise<JournalPage> {
  return client.runs.journal({ ...filter, task: taskOf(id, filter) } as JournalFilter);
}

/** The task of a filter: `id` or `owner/id`, or its parts. */
export function taskOf(
  id: string | undefined,
  { queue, owner }: { queue?: string | undefined; owner?: string | undefined },
): TaskRef | undefined {
  if (id === undefined) return undefined;
  return owner === undefined && queue === undefined ? id : { id, owner, queue };
}
