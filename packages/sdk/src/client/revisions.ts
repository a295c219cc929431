import { CarillonError, isCarillonError, type TaskName, type TaskRef } from "@carillon/core";
import { assertOptions } from "@carillon/core/internal";
import { wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import type { TaskWriter } from "./task-writer.js";
import type { AuthorOptions, PutResult } from "./types.js";
import { revisionView, type TaskRevision } from "./view.js";

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function revisionsOf(scope: Scope, ref: TaskRef): Promise<TaskRevision[]> {
  return kept(scope, await locate(scope, ref));
}

async function kept(scope: Scope, name: TaskName): Promise<TaskRevision[]> {
  return (await scope.store.tasks.revisions(name)).map(revisionView);
}

/** Finds a task, or one that was deleted and can be put again. */
async function locate(scope: Scope, ref: TaskRef): Promise<TaskName> {
  return scope.locate(ref).catch((error: unknown) => {
    if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
    return scope.store.tasks.locate(scope.resolve(ref), "revisions");
  });
}

/** @param number undefined: the newest revision @throws `REVISION_NOT_FOUND`, as `update` and `put` */
export async function restore(
  scope: Scope,
  writer: TaskWriter,
  { ref, number }: { readonly ref: TaskRef; readonly number: number | undefined },
  options: AuthorOptions,
): Promise<PutResult> {
  if (number !== undefined) wholeNumber(number, "number", 1, Number.MAX_SAFE_INTEGER);
  assertOptions(options, ["by"]);
  const name = await locate(scope, ref);
  const revisions = await kept(scope, name);
  const found = number === undefined ? revisions[0] : revisions.find((one) => one.number === number);
  if (!found) {
    throw new CarillonError(
      "REVISION_NOT_FOUND",
      `the task has no ${number === undefined ? "earlier revision" : `revision ${number}`}.`,
      {
        field: "number",
        remedy: "List its revisions: the last 20 are kept.",
      },
    );
  }
  const { definition, deleted } = found;
  return writer
    .update(name, () => definition, options)
    .catch((error: unknown) => {
      if (!isCarillonError(error, "TASK_NOT_FOUND")) throw error;
      // A task that was paused when it was deleted comes back paused.
      const task = { ...definition, enabled: deleted !== "paused" };
      return writer.put(task, undefined, { ...options, ifRevision: "absent" });
    });
}
