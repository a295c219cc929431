import { isCarillonError, TASK_STATES, type TaskName, type TaskRef } from "@carillon/core";
import { revisionView, type Scope, type TaskRevision } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { as, count, refOf, taskRef, time } from "../shapes.js";
import { taskInput } from "./task.js";

export const listRevisions = operation({
  http: "GET /tasks/:queue/:owner/:id/revisions",
  role: "viewer",
  reach: "owner",
  summary:
    "Lists the definitions of a task that others have replaced, newest first: the last 20, fewer if they are longer than 64 KiB together. For a deleted task, its last definition, for 7 days.",
  input: z.strictObject(taskRef),
  output: as<{ revisions: TaskRevision[] }>(
    z.object({
      revisions: z.array(
        z.object({
          number: count.describe("Counts the definitions of the task from 1."),
          until: time.describe("Time of its replacement or deletion."),
          deleted: z.enum(TASK_STATES).optional().describe("The task was deleted in this state."),
          by: z.string().optional().describe("Author of the put that stored it."),
          definition: taskInput,
        }),
      ),
    }),
  ),
  async run({ scope }, input) {
    return { revisions: await revisionsOf(scope, await locate(scope, refOf(input))) };
  },
});

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
