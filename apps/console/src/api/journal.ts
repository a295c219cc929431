import { CarillonError, type TaskRef } from "@carillon/sdk";
import { RUNS } from "./answers.js";
import { JOURNAL_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";

/** The final runs of all tasks. */
export const journalEndpoint = endpoint(
  { query: JOURNAL_QUERY, answer: RUNS },
  async ({ client, query: { task, owner, ...filter } }) =>
    ok(await client.runs.journal({ ...filter, task: refOf(task, owner, filter.queue) })),
);

/** @throws `INVALID_OPTION` for an owner alone */
function refOf(
  id: string | undefined,
  owner: string | undefined,
  queue: string | undefined,
): TaskRef | undefined {
  if (id !== undefined) return { id, owner, queue };
  if (owner === undefined) return undefined;
  throw new CarillonError("INVALID_OPTION", "given without task.", {
    field: "owner",
    remedy: "Give the task's id as well.",
  });
}
