import { CarillonError, isCarillonError, type TaskInput } from "@carillon/core";
import { conflict, invalid } from "@carillon/core/internal";
import type { PutResult } from "./types.js";
import { type Definition, definitionOf, type Task } from "./view.js";

/** Attempts before a conflict with concurrent changes is reported to the caller. */
const TRIES = 10;

/** Result of a put, with the revision of the stored definition if it is `unchanged`. */
export interface Attempt {
  readonly done: PutResult;
  readonly revision: string | undefined;
}

/** Reads a task and puts it changed. If someone else has changed it in between, repeats both. */
export async function update(
  read: () => Promise<Task>,
  change: (task: Definition) => TaskInput | Promise<TaskInput>,
  put: (task: TaskInput, ifRevision: string) => Promise<Attempt>,
): Promise<PutResult> {
  for (let tries = 0; tries < TRIES; tries++) {
    const task = await read();
    const changed = await change(definitionOf(task));
    assertSameName(task, changed);
    try {
      const { done, revision } = await put(changed, task.revision);
      // The put changed nothing, but the stored definition is not the one that was read: another client made the same
      // change. If both add one, both must count.
      if (done.outcome !== "unchanged" || revision === task.revision) return done;
    } catch (error) {
      if (!isCarillonError(error, "CONFLICT")) throw error;
    }
  }
  throw conflict("the task kept changing during the update.", "Try again.");
}

function assertSameName(task: Task, changed: TaskInput): void {
  for (const field of ["queue", "owner", "id"] as const) {
    if (Object(changed)[field] === task[field]) continue;
    throw new CarillonError("INVALID_NAME", "not the name of the task.", {
      field,
      remedy:
        "Return the given task with your changes. The operation `tasks.move` takes it to another queue.",
    });
  }
}

/** @throws `INVALID_OPTION` */
export function assertChange(change: unknown): void {
  if (typeof change !== "function")
    throw invalid(
      "change",
      "not a function.",
      "Give a function that takes the task and returns the changed task.",
    );
}
