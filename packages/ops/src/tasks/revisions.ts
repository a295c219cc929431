import { CarillonError, isCarillonError, TASK_STATES, type TaskName, type TaskRef } from "@carillon/core";
import type { Preview } from "@carillon/sdk";
import { revisionView, type Scope, type TaskRevision } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, refOf, taskRef, time, wholeNumber } from "../shapes.js";
import { preview, taskInput } from "./task.js";

export const listRevisions = operation({
  http: "GET /tasks/:queue/:owner/:id/revisions",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the definitions of a task that others have replaced, newest first: the last 20, fewer if they are longer than 64 KiB together. For a deleted task, its last definition, for 7 days.",
  input: z.strictObject({
    ...taskRef,
    compare: wholeNumber.optional().describe("Also previews that this one is put again."),
  }),
  output: as<{ revisions: TaskRevision[]; preview?: Preview | undefined }>(
    z.object({
      revisions: z.array(
        z.object({
          number: count.describe("Counts the definitions of the task from 1."),
          until: time.describe("Time of its replacement or deletion."),
          deleted: z.enum(TASK_STATES).optional().describe("The task was deleted in this state."),
          by: z.string().optional().describe("Author of the put that stored it."),
          change: z
            .string()
            .optional()
            .describe(
              "Id of the change of many tasks that replaced it; after `undo:`, of the one that was undone. Of an apply: `set:NAME:GENERATION`.",
            ),
          definition: taskInput,
        }),
      ),
      preview: preview.optional(),
    }),
  ),
  async run({ client, scope }, { compare, ...ref }) {
    const revisions = await revisionsOf(scope, await locate(scope, refOf(ref)));
    if (compare === undefined) return { revisions };
    const { preview } = await client.put(revisionNamed(revisions, compare).definition, { dryRun: true });
    return { revisions, preview };
  },
});

/** @param number undefined: the newest @throws `REVISION_NOT_FOUND` */
export function revisionNamed(revisions: readonly TaskRevision[], number: number | undefined): TaskRevision {
  const found = number === undefined ? revisions[0] : revisions.find((one) => one.number === number);
  if (found) return found;
  const which = number === undefined ? "earlier revision" : `revision ${number}`;
  throw new CarillonError("REVISION_NOT_FOUND", `the task has no ${which}.`, {
    field: "number",
    remedy: "List its revisions: the last 20 are kept.",
  });
}

export async function revisionsOf({ store }: Scope, name: TaskName): Promise<TaskRevision[]> {
  return (await store.tasks.revisions(name)).map(revisionView);
}

/** Finds a task, or one that was deleted and can be put again. */
export async function locate(scope: Scope, ref: TaskRef): Promise<TaskName> {
  return scope.locate(ref).catch((error: unknown) => {
    if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
    return scope.store.tasks.locate(scope.resolve(ref), "revisions");
  });
}
