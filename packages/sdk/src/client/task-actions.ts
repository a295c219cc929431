import { CarillonError, type TaskName, type TaskRef, type TriggerOptions } from "@carillon/core";
import { assertOptions, assertOverlap } from "@carillon/core/internal";
import { notFound, resumeFrom, shortText } from "./input.js";
import type { Scope } from "./scope.js";
import type { PauseOptions, ResumeOptions, TriggerResult, Warning } from "./types.js";

/** @returns false if it was paused already @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `CONFLICT` if it is finished */
export async function pause(scope: Scope, ref: TaskRef, options: PauseOptions): Promise<boolean> {
  assertOptions(options, ["note", "by", "cancelQueued"]);
  const [by, note] = [shortText(options.by, "by"), shortText(options.note, "note")];
  const { store, actor } = scope;
  const name = await scope.locate(ref);
  const answer = await store.tasks.pause(name, by, note);
  if (answer === "MISSING") throw notFound(name);
  if (answer === "FINISHED") {
    throw new CarillonError("CONFLICT", `${name.id} is finished; there is nothing to pause.`);
  }
  if (options.cancelQueued) await store.runs.cancelQueued(name, by || actor);
  return answer === "OK";
}

/** @returns false if it was not paused @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function resume(scope: Scope, ref: TaskRef, options: ResumeOptions): Promise<boolean> {
  assertOptions(options, ["from", "by"]);
  const from = resumeFrom(options.from);
  const by = shortText(options.by, "by").replace(/\s/g, "_");
  const name = await scope.locate(ref);
  const answer = await scope.store.tasks.resume(name, from, by);
  if (answer === "MISSING") throw notFound(name);
  return answer === "OK";
}

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION` */
export async function trigger(scope: Scope, ref: TaskRef, options: TriggerOptions): Promise<TriggerResult> {
  assertOptions(options, ["overlap", "by"]);
  assertOverlap(options.overlap);
  const by = scope.identity(shortText(options.by, "by"));
  const name = await scope.locate(ref);
  const [result, warnings] = await Promise.all([
    scope.store.claims.trigger(name, by, options.overlap),
    warningsOf(scope, name),
  ]);
  if (result.outcome === "skipped") return { outcome: "skipped", code: "SKIPPED_OVERLAP" };
  if (result.outcome === "queued") return { outcome: "queued", key: by.key, warnings };
  return { outcome: "enqueued", run: result.run, key: by.key, enqueued: result.enqueued, warnings };
}

/** Read at the same time as the trigger: it need not wait for this. */
async function warningsOf({ store, coverage }: Scope, name: TaskName): Promise<Warning[]> {
  const task = await store.tasks.get(name).catch(() => undefined);
  return task ? coverage.warningsOf(task.definition) : [];
}
