import { CarillonError, type TaskRef } from "@carillon/sdk";
import { CHANGES, RUNS } from "./answers.js";
import { CHANGES_QUERY, JOURNAL_QUERY } from "./query.js";
import { endpoint, ok } from "./route.js";

/** The final runs of all tasks. */
export const journalEndpoint = endpoint(
  { query: JOURNAL_QUERY, answer: RUNS },
  async ({ client, query: { task, owner, ...filter } }) =>
    ok(await client.runs.journal({ ...filter, task: refOf(task, owner, filter.queue) })),
);

/** The log of changes, with their authors. */
export const changesEndpoint = endpoint(
  { query: CHANGES_QUERY, answer: CHANGES },
  async ({ client, query: { task, owner, queue, ...filter } }) =>
    ok(await client.changes.list({ ...filter, task: refOf(task, owner, queue) })),
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
