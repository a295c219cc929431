import { CarillonError, type Json, type TaskName, type TaskRef, type TriggerOptions } from "@carillon/core";
import { assertName, assertOneOf, assertOptions, assertOverlap, triggerKey } from "@carillon/core/internal";
import type { TriggerResult as StoredTrigger } from "@carillon/store";
import { differenceOf, shown } from "./change.js";
import { notFound, shortText } from "./input.js";
import type { Scope } from "./scope.js";
import type { TaskWriter } from "./task-writer.js";
import type { DeleteOptions, PauseOptions, ResumeOptions, TriggerResult } from "./types.js";
import { ofEnqueued } from "./worker-warnings.js";

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function deleteTask(scope: Scope, ref: TaskRef, options: DeleteOptions): Promise<void> {
  assertOptions(options, ["by"]);
  const by = scope.author(options.by);
  const name = await scope.locate(ref);
  const { tasks } = scope.store;
  // On one connection the definition is read before it is deleted.
  const [stored, deleted] = await Promise.all([tasks.get(name).catch(() => undefined), tasks.delete(name)]);
  // False if it was deleted since it was located: by someone else, or by this call, whose answer was lost and which was repeated.
  if (deleted || stored) scope.log("delete", name, by, differenceOf(stored?.definition, undefined));
}

/** @returns false if it was paused already @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `CONFLICT` if it is finished */
export async function pause(scope: Scope, ref: TaskRef, options: PauseOptions): Promise<boolean> {
  assertOptions(options, ["note", "by", "cancelQueued"]);
  const [by, note] = [scope.author(options.by), shortText(options.note, "note")];
  const { store, actor } = scope;
  const name = await scope.locate(ref);
  const answer = await store.tasks.pause(name, by, note);
  if (answer === "MISSING") throw notFound(name);
  if (answer === "FINISHED")
    throw new CarillonError("CONFLICT", `${name.id} is finished; there is nothing to pause.`);
  const { cancelQueued } = options;
  if (answer === "OK" || cancelQueued)
    scope.log("pause", name, by, {
      details: { note: note || undefined, cancelQueued: cancelQueued || undefined },
    });
  if (cancelQueued) await store.runs.cancelQueued(name, by || actor);
  return answer === "OK";
}

/** @returns false if it was not paused @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function resume(scope: Scope, ref: TaskRef, options: ResumeOptions): Promise<boolean> {
  assertOptions(options, ["missed", "mode", "by"]);
  const { missed = "skip", mode } = options;
  assertOneOf(missed, "missed", ["skip", "catch-up"]);
  assertOneOf(mode, "mode", ["live", "shadow"]);
  const by = scope.author(options.by);
  const name = await scope.locate(ref);
  const { tasks } = scope.store;
  const [stored, answer] = await Promise.all([
    tasks.get(name).catch(() => undefined),
    tasks.resume(name, missed, by.replace(/\s/g, "_"), { mode }),
  ]);
  if (answer === "MISSING") throw notFound(name);
  if (answer === "OK")
    scope.log("resume", name, by, {
      before: stored?.paused && shown({ paused: stored.paused }),
      details: { missed, mode },
    });
  return answer === "OK";
}

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK`, `INVALID_OPTION`, `INVALID_NAME`, `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE` */
export async function trigger(
  scope: Scope,
  writer: TaskWriter,
  ref: TaskRef,
  options: TriggerOptions,
): Promise<TriggerResult> {
  assertTriggerOptions(options);
  const { overlap } = options;
  const payload = options.payload === undefined ? undefined : writer.payload(options.payload);
  const author = scope.author(options.by);
  const name = await scope.locate(ref);
  if (payload !== undefined) await writer.assertPayload(name, payload);
  const { key, result } = await triggerOne(scope, name, author, options, payload);
  const { outcome, repeated } = result;
  const run = outcome === "enqueued" ? result.run : undefined;
  const own = payload === undefined ? undefined : "own";
  if (!repeated) scope.log("trigger", name, author, { details: { outcome, run, overlap, payload: own } });
  if (outcome === "skipped") return { outcome, code: "SKIPPED_OVERLAP" };
  const warnings = await scope.coverage.warningsOf({ queue: name.queue, type: result.type });
  if (outcome === "queued") return { outcome, key, repeated, warnings };
  return {
    outcome,
    run: result.run,
    key,
    enqueued: result.enqueued,
    repeated,
    warnings: ofEnqueued(warnings),
  };
}

/** Triggers a task, and returns the key of the occurrence too. @param options checked */
export async function triggerOne(
  scope: Scope,
  name: TaskName,
  author: string,
  { key: given, overlap, force = false }: TriggerOptions,
  payload?: Json,
): Promise<{ key: string; result: StoredTrigger }> {
  const keyed = given !== undefined;
  const by = scope.identity(author, keyed ? triggerKey(name, given) : undefined);
  const result = await scope.produce("trigger", name, (trace) =>
    scope.store.claims.trigger(name, by, overlap, { force, payload, keyed, trace }),
  );
  return { key: by.key, result };
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` for the key */
function assertTriggerOptions(options: TriggerOptions): void {
  assertOptions(options, ["key", "overlap", "by", "force", "payload"]);
  assertOverlap(options.overlap);
  if (options.key !== undefined) assertName(options.key, "key");
  if (options.force !== undefined && typeof options.force !== "boolean")
    throw new CarillonError("INVALID_OPTION", "not true or false.", { field: "force" });
}
