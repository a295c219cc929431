import type { CarillonError } from "@carillon/core";
import { conflict } from "@carillon/core/internal";
import { findRun } from "@carillon/sdk/internal";
import type { Store } from "@carillon/store";
import { z } from "zod";
import { operation } from "../operation.js";
import { runId, time } from "../shapes.js";

/**
 * Each item has its index, its data and its idempotency key again. A second call for the same run starts nothing and returns the same new
 * run, whose record may be deleted by then, unless that one ended before it had items. If items fail again, retry those of the new run.
 */
export const retryItems = operation({
  http: "POST /runs/:id/retry-items",
  role: "operator",
  reach: "owner",
  logs: "retry",
  once: "script",
  summary:
    "Starts a new run of the items of this one that failed or that its time limit left, and no others. Given again, it names the same new run. Refused if the run is not over or has no such items.",
  input: z.strictObject({ id: runId }),
  output: z.object({ run: z.string(), enqueued: time }),
  status: [202],
  async run({ scope, store, by, log }, { id }) {
    const run = await findRun(scope, id);
    if (run.state !== "final") throw refused(id, "is not over", "Wait for its end, or cancel it.");
    const { queue } = run.task;
    if ((await store.items.count(queue, id)) === 0)
      throw refused(id, "has no items", "Only runs of a fan-out have items. Trigger its task instead.");
    const task = await store.tasks.get(run.task);
    if (task && "definition" in task && task.definition.type !== run.type)
      throw refused(id, `is of type ${run.type}, and its task no longer`, "Trigger its task instead.");
    const hasWork = async () => {
      if (await hasItemsToRetry(store, queue, id)) return;
      throw refused(
        id,
        "has no failed items, nor any that its time limit left",
        "There is nothing to retry.",
      );
    };
    const { repeated, ...retried } = await store.claims.retryItems(
      run,
      { node: scope.actor, name: by },
      hasWork,
    );
    if (!repeated) log(run.task, { details: { run: id, as: retried.run } });
    return retried;
  },
});

function refused(id: string, what: string, remedy: string): CarillonError {
  return conflict(`run ${id} ${what}.`, remedy);
}

/** Whether items of a run failed, or its time limit left some that no other run has taken. */
async function hasItemsToRetry({ items }: Store, queue: string, run: string): Promise<boolean> {
  const failed = await items.page(queue, run, (status) => status === "failed", { from: 0, limit: 1 });
  if (failed.items.length > 0) return true;
  const { left, by } = await items.left(queue, run);
  return left > 0 && (by === undefined || (await items.count(queue, by)) === 0);
}
