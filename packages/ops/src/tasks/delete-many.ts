import type { TaskName } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import { z } from "zod";
import { bulkUndoableIfFew, undoableResult } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { exampleTask, operation } from "../operation.js";

export const deleteMany = operation({
  http: "POST /tasks/delete",
  role: "admin",
  reach: "owner",
  logs: "delete",
  once: { known: "state", leaves: "whole", against: [["tasks.put", { task: exampleTask("t1") }]] },
  example: { tag: "due" },
  summary:
    "Deletes all tasks that match, with their records; those of an owner with the deliveries of its alerts, unless `deliveries` is false. A change of at most 1,000 tasks can be undone for 7 days.",
  input: z.strictObject({ ...filter, dryRun }),
  output: undoableResult,
  async run(call, { dryRun, ...input }) {
    const { deliveries = true, ...checked } = checkedFilter(call.scope, input);
    const { tasks } = call.store;
    const act = async (selected: StoredTask, name: TaskName, change: string | undefined) => {
      for (let task: StoredTask | undefined = selected; task; task = await tasks.get(name)) {
        // It may no longer match; claims since then do not matter.
        if (task.revision !== selected.revision || task.created !== selected.created)
          throw conflict(`${name.id} was changed meanwhile.`, "Call again, if it is still meant.");
        if (await tasks.delete(name, { seen: task.generation, change })) return true;
      }
      return false;
    };
    return bulkUndoableIfFew(call, { filter: { ...checked, deliveries }, dryRun, act });
  },
});
