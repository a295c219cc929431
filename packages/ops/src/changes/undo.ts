import { ALERTS_QUEUE, CarillonError, type TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { assertEntry, type Definition, TaskWriter } from "@carillon/sdk/internal";
import { z } from "zod";
import { type BulkRefusal, bulkUndoable, nameOfKey, refusalOf, Tally, undoableResult } from "../bulk/bulk.js";
import { moved } from "../calendars/calendar.js";
import { type Call, exampleTask, operation } from "../operation.js";
import { plan } from "../sets/set.js";
import { undoApply } from "../sets/undo.js";
import { dryRun, given } from "../shapes.js";
import { restoreTask } from "../tasks/restore.js";
import { decodeChange, type Entry } from "./list.js";
import { markOf, replacedBy, undoMark } from "./replaced.js";

/** Tasks whose revisions are read at once. */
const CHUNK = 100;
const SAMPLE = 10;

/** A repetition goes on: it leaves out tasks that were undone before, and those that the change has not reached. */
export const undoChange = operation({
  http: "POST /changes/:id/undo",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: { known: "revision", leaves: "whole", against: [["tasks.put", { task: exampleTask("v1") }]] },
  summary:
    "Puts the definitions again that a change of many tasks replaced, if it can be undone. Of a deletion it brings the tasks back, without their runs. Of an apply it also removes the tasks that this created, and brings back those that it removed. Tasks that were changed since are refused, each by itself.",
  input: z.strictObject({ id: given.describe("A change's id, as the list shows it."), dryRun }),
  output: undoableResult.extend({
    moved: moved
      .optional()
      .describe("For an apply: the tasks that get another next time, or with `dryRun` would."),
    plan: plan.optional().describe("For an apply, with `dryRun`: all that the undo would do."),
  }),
  async run(call, { id, dryRun }) {
    const { scope, store, by, owner } = call;
    assertEntry(id, "id");
    const [ms, number] = id.split("-");
    const [stored] = await store.changes.page(`${ms}-${Number(number) + 1}`, 1);
    const change = stored?.id === id ? decodeChange(stored) : undefined;
    if (!change?.undo || (owner !== undefined && change.scope.owner !== owner)) throw cannot(id, change);
    if (change.scope.set !== undefined) return undoApply(call, change, change.undo, dryRun);
    const tasks = change.undo.map(nameOfKey);
    if (change.kind === "delete")
      return bringBack(
        call,
        change,
        tasks.filter(({ queue }) => queue !== ALERTS_QUEUE),
        dryRun,
      );
    const former = (name: TaskName) => replacedBy(store, change, name);
    const left: TaskName[] = [];
    for (let at = 0; at < tasks.length; at += CHUNK) {
      const some = tasks.slice(at, at + CHUNK);
      // Those that are refused are asked again, each by itself.
      const found = await Promise.all(some.map((name) => former(name).catch(() => true)));
      left.push(...some.filter((_, i) => found[i] !== undefined));
    }
    const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
    return bulkUndoable(call, change.scope, left, {
      dryRun,
      check: former,
      act: async (name) => {
        // Read after the task, which is put only if it is still the same.
        const undone = async (task: Definition) => (await former(name)) ?? task;
        const { outcome } = await writer.edit(name, undone, { by, many: true, change: undoMark(id) });
        return outcome === "updated";
      },
      details: { undoes: id },
    });
  },
});

/** Restores deleted tasks; each is a put of its own in the log. Those that exist are left as they are. */
async function bringBack(
  call: Call,
  change: Entry,
  tasks: readonly TaskName[],
  dryRun: boolean | undefined,
): Promise<z.output<typeof undoableResult>> {
  const { scope, store } = call;
  const [done, refused] = [new Tally<TaskName>(SAMPLE), new Tally<BulkRefusal>(SAMPLE)];
  for (let at = 0; at < tasks.length; at += CHUNK) {
    const some = tasks.slice(at, at + CHUNK).map(async (name) => {
      if (await store.tasks.get(name)) return;
      await restored(call, change, name, dryRun).then(
        () => done.add(name),
        (error: unknown) => refused.add(refusalOf(name, error)),
      );
    });
    await Promise.all(some);
    scope.progress(some.length);
  }
  return { ...done.result, refused: refused.result };
}

/** Restores a task as this change has deleted it. @throws `CONFLICT` if another call has deleted it */
async function restored(call: Call, change: Entry, name: TaskName, dryRun: boolean | undefined) {
  const [newest] = await call.store.tasks.revisions(name);
  if (newest && newest.change !== markOf(change))
    throw conflict("another call has deleted it.", "Restore it by itself.");
  return restoreTask.run(call, { ...name, number: newest?.number, dryRun });
}

function cannot(id: string, change: Entry | undefined): CarillonError {
  const { scope, count, details } = change ?? {};
  if (scope?.set === undefined)
    return new CarillonError("CONFLICT", `change ${id} cannot be undone.`, {
      remedy: "Only changes that list a number of tasks to undo can be; restore single tasks.",
    });
  const calendars = details?.["calendars"];
  const why = Array.isArray(calendars)
    ? `it also stored the calendar ${calendars.join(", ")}, whose former entries are not kept`
    : `it changed ${count} tasks, more than are listed`;
  return new CarillonError("CONFLICT", `the apply ${id} cannot be undone: ${why}.`, {
    remedy: `Apply the former file of the set ${scope.set} again, with a newer version.`,
  });
}
