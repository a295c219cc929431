import type { Run } from "@carillon/core";
import type { StoredTask } from "@carillon/store";
import { z } from "zod";
import { type BulkRefusal, keyOf, nameOf, refused as refusedShape, selected, Tally } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { count, given, runState, taskName } from "../shapes.js";
import { namedRuns } from "./runs-to-replay.js";

const cancelled = z.object({ run: z.string(), task: taskName, state: runState });
type CancelledRun = z.output<typeof cancelled>;

/** Runs, and entries of samples, at a time. */
const [CHUNK, SAMPLE] = [100, 10];

export const cancelMany = operation({
  http: "POST /runs/cancel",
  role: "operator",
  reach: "owner",
  logs: "cancel",
  once: { known: "state", leaves: "whole", against: [["tasks.triggerMany", { key: undefined }]] },
  example: { tag: "open" },
  summary: "Ends the queued and running runs of all tasks that match, or those that are named.",
  input: z.strictObject({
    ...filter,
    runs: z
      .array(given, "not a list")
      .readonly()
      .optional()
      .describe(
        "Ids of runs, at most 1,000; those that have ended are left out. Not together with a condition.",
      ),
    dryRun,
  }),
  output: z.object({
    count: count.describe("Runs whose end it requested, or with `dryRun` would request."),
    tasks: count.describe("Number of tasks that they belong to."),
    sample: z.array(cancelled).readonly().describe("The first ten runs, as they were before."),
    refused: refusedShape,
  }),
  async run({ scope, store: { runs }, by, log }, { runs: ids, dryRun, ...input }) {
    const checked = ids ? input : checkedFilter(scope, input);
    const [done, refused] = [new Tally<CancelledRun>(SAMPLE), new Tally<BulkRefusal>(SAMPLE)];
    const tasks = new Set<string>();
    const cancel = async (some: readonly Run[]) => {
      // Those whose end was requested before are not counted.
      const open = some.filter(({ state, cancel }) => state !== "final" && !cancel);
      const words = await Promise.all(
        open.map(({ id, task }) => (dryRun ? "OK" : runs.cancel(task, id, by || scope.actor))),
      );
      for (const [i, { id, task, state }] of open.entries()) {
        if (words[i] !== "OK") continue;
        const { queue, owner, id: name } = task;
        tasks.add(keyOf(task));
        done.add({ run: id, task: { queue, owner, id: name }, state });
      }
    };
    const cancelAllOf = async (task: StoredTask) => {
      const name = nameOf(task);
      const open = task.hasOpenRuns ? await runs.open(name) : [];
      for (let at = 0; at < open.length; at += CHUNK)
        await cancel(await runs.many(name.queue, open.slice(at, at + CHUNK)));
    };
    try {
      if (ids) {
        const named = await namedRuns(scope, ids, input, refused);
        for (let at = 0; at < named.length; at += CHUNK) await cancel(named.slice(at, at + CHUNK));
      } else
        for await (const page of selected(scope, checked, undefined, refused))
          for (const task of page) await cancelAllOf(task);
    } finally {
      // Also if Redis failed halfway.
      if (!dryRun && done.count > 0) {
        const { owner, tag, queue } = checked;
        const sample = [...new Map(done.sample.map(({ task }) => [keyOf(task), task])).values()];
        log({ owner, tag, queue }, { count: tasks.size, sample, details: { runs: done.count } });
      }
    }
    return { ...done.result, tasks: tasks.size, refused: refused.result };
  },
});
