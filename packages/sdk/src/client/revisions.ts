import { CarillonError, type TaskRef } from "@carillon/core";
import { wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import type { TaskWriter } from "./task-writer.js";
import type { AuthorOptions, PutResult } from "./types.js";
import { revisionView, type TaskRevision } from "./view.js";

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function revisionsOf(scope: Scope, ref: TaskRef): Promise<TaskRevision[]> {
  return (await scope.store.tasks.revisions(await scope.locate(ref))).map(revisionView);
}

/** @throws `REVISION_NOT_FOUND`, as `update` */
export async function restore(
  scope: Scope,
  writer: TaskWriter,
  { ref, number }: { readonly ref: TaskRef; readonly number: number },
  options: AuthorOptions,
): Promise<PutResult> {
  wholeNumber(number, "number", 1, Number.MAX_SAFE_INTEGER);
  const name = await scope.locate(ref);
  const found = (await revisionsOf(scope, name)).find((one) => one.number === number);
  if (!found) {
    throw new CarillonError("REVISION_NOT_FOUND", `the task has no revision ${number}.`, {
      field: "number",
      remedy: "List its revisions: the last 20 are kept.",
    });
  }
  return writer.update(name, () => found.definition, options);
}
