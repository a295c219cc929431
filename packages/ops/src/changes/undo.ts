import { CarillonError, type TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { assertEntry, revisionView, TaskWriter } from "@carillon/sdk/internal";
import { z } from "zod";
import { bulk, bulkResult } from "../bulk/bulk.js";
import { operation } from "../operation.js";
import { dryRun, given } from "../shapes.js";
import { undoOf } from "../tasks/spread.js";
import { decodeChange } from "./list.js";

export const undoChange = operation({
  http: "POST /changes/:id/undo",
  role: "admin",
  reach: "owner",
  logs: "put",
  summary:
    "Puts the definitions again that a change of many tasks replaced, if it can be undone. Tasks that were changed since are refused, each by itself.",
  input: z.strictObject({ id: given, dryRun }),
  output: bulkResult,
  async run(call, { id, dryRun }) {
    const { scope, store, by, log, owner } = call;
    assertEntry(id, "id");
    const [ms, number] = id.split("-");
    const [stored] = await store.changes.page(`${ms}-${Number(number) + 1}`, 1);
    const change = stored?.id === id ? decodeChange(stored) : undefined;
    if (!change?.undo || (owner !== undefined && change.scope.owner !== owner))
      throw new CarillonError("CONFLICT", `change ${id} cannot be undone.`, {
        remedy: "Only changes that list a number of tasks to undo can be; restore single tasks.",
      });
    const replaced = new Map(change.undo.map((one) => one.split("#") as [string, string]));
    const tasks = [...replaced.keys()].map((name) => {
      const [queue, owner, id = ""] = name.split("/");
      return { queue, owner, id };
    });
    const former = async (name: TaskName) => {
      const [newest] = await store.tasks.revisions(name);
      const expected = replaced.get(`${name.queue}/${name.owner}/${name.id}`);
      if (newest && String(newest.number) === expected) return revisionView(newest).definition;
      throw conflict("it was changed since.", "Restore a definition of it by itself.");
    };
    const writer = new TaskWriter(scope, undefined, Number.MAX_SAFE_INTEGER);
    const undo: string[] = [];
    return bulk(
      { ...call, log: (_, facts) => log(change.scope, { ...facts, undo }) },
      {
        filter: { tasks },
        dryRun,
        check: former,
        act: async (_, name) => {
          // Read after the task, which is put only if it is still the same.
          const { outcome } = await writer.edit(name, () => former(name), { by, many: true });
          if (outcome === "updated") undo.push(await undoOf(scope, name));
          return outcome === "updated";
        },
        details: { undoes: id },
      },
    );
  },
});
