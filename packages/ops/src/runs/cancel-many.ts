import type { StoredTask } from "@carillon/store";
import { z } from "zod";
import { type BulkRefusal, nameOf, refused as refusedShape, selected, Tally } from "../bulk/bulk.js";
import { checkedFilter, dryRun, filter } from "../bulk/filter.js";
import { operation } from "../operation.js";
import { count, runState, taskName } from "../shapes.js";

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
  summary: "Ends the queued and running runs of all tasks that match.",
  input: z.strictObject({ ...filter, dryRun }),
  output: z.object({
    count: count.describe("Runs whose end it requested, or with `dryRun` would request."),
    tasks: count.describe("Number of tasks that they belong to."),
    sample: z.array(cancelled).readonly().describe("The first ten runs, as they were before."),
    refused: refusedShape,
  }),
  async run({ scope, store: { runs }, by, log }, { dryRun, ...input }) {
    const checked = checkedFilter(scope, input);
    const [done, refused] = [new Tally<CancelledRun>(SAMPLE), new Tally<BulkRefusal>(SAMPLE)];
    let tasks = 0;
    const cancel = async (task: StoredTask) => {
      const name = nameOf(task);
      const open = task.hasOpenRuns ? await runs.open(name) : [];
      const before = done.count;
      for (let at = 0; at < open.length; at += CHUNK) {
        // Those whose end was requested before are not counted.
        const some = (await runs.many(name.queue, open.slice(at, at + CHUNK))).filter(
          ({ state, cancel }) => state !== "final" && !cancel,
        );
        const words = await Promise.all(
          some.map(({ id }) => (dryRun ? "OK" : runs.cancel(name, id, by || scope.actor))),
        );
        for (const [i, { id, state }] of some.entries())
          if (words[i] === "OK") done.add({ run: id, task: name, state });
      }
      if (done.count > before) tasks += 1;
    };
    try {
      for await (const page of selected(scope, checked, undefined, refused))
        for (const task of page) await cancel(task);
    } finally {
      // Also if Redis failed halfway.
      if (!dryRun && done.count > 0) {
        const { owner, tag, queue } = checked;
        const sample = [
          ...new Map(
            done.sample.map(({ task }) => [`${task.queue}/${task.owner}/${task.id}`, task]),
          ).values(),
        ];
        log({ owner, tag, queue }, { count: tasks, sample, details: { runs: done.count } });
      }
    }
    return { ...done.result, tasks, refused: refused.result };
  },
});
