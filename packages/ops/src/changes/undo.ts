import { CarillonError, type TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { assertEntry, type Definition, revisionView, TaskWriter } from "@carillon/sdk/internal";
import type { Store } from "@carillon/store";
import { z } from "zod";
import { bulkUndoable, undoableResult } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { dryRun, given } from "../shapes.js";
import { decodeChange, type Entry } from "./list.js";

/** Tasks whose revisions are read at once. */
const CHUNK = 100;

/** A repetition goes on: it leaves out tasks that were undone before, and those that the change has not reached. */
export const undoChange = operation({
  http: "POST /changes/:id/undo",
  role: "admin",
  reach: "owner",
  logs: "put",
  once: {
    known: "revision",
    leaves: "whole",
    against: [
      [
        "tasks.put",
        {
          task: {
            id: "v1",
            owner: "acme",
            queue: "bells",
            type: "ring",
            schedule: { every: "2h" },
            payload: {},
          },
        },
      ],
    ],
  },
  summary:
    "Puts the definitions again that a change of many tasks replaced, if it can be undone. Tasks that were changed since are refused, each by itself.",
  input: z.strictObject({ id: given.describe("A change's id, as the list shows it."), dryRun }),
  output: undoableResult,
  async run(call, { id, dryRun }) {
    const { scope, store, by, owner } = call;
    assertEntry(id, "id");
    const [ms, number] = id.split("-");
    const [stored] = await store.changes.page(`${ms}-${Number(number) + 1}`, 1);
    const change = stored?.id === id ? decodeChange(stored) : undefined;
    if (!change?.undo || (owner !== undefined && change.scope.owner !== owner))
      throw new CarillonError("CONFLICT", `change ${id} cannot be undone.`, {
        remedy: "Only changes that list a number of tasks to undo can be; restore single tasks.",
      });
    const tasks = change.undo.map((one) => {
      const [queue = "", owner = "", id = ""] = one.split("/");
      return { queue, owner, id };
    });
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

/** Kept with the definitions that a change replaced. All undos of one change have one mark, since each goes on with those before. */
function markOf({ id, details }: Entry): string {
  return typeof details?.["undoes"] === "string" ? undoMark(details["undoes"]) : id;
}

function undoMark(id: string): string {
  return `undo:${id}`;
}

/**
 * The definition that a change replaced; undefined: the change has not reached the task, or was undone.
 * @throws `CONFLICT` if it was changed since
 */
async function replacedBy(store: Store, change: Entry, name: TaskName): Promise<Definition | undefined> {
  const mark = markOf(change);
  const kept = await store.tasks.revisions(name);
  const [newest] = kept;
  if (newest?.change === mark) return revisionView(newest).definition;
  if (newest?.change === undoMark(change.id)) return undefined;
  const isNewer = newest && (newest.until > change.at || newest.deleted !== undefined);
  if (!isNewer && !kept.some((one) => one.change === mark)) return undefined;
  throw conflict("it was changed since.", "Restore a definition of it by itself.");
}
