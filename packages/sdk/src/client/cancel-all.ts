import type { Run, TaskName } from "@carillon/core";
import { assertOptions } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import {
  type BulkFilter,
  type BulkOptions,
  type BulkRefusal,
  checkedFilter,
  nameOf,
  selected,
  Tally,
} from "./bulk.js";
import type { Scope } from "./scope.js";
import type { AuthorOptions } from "./types.js";

export interface CancelledRun {
  readonly run: string;
  readonly task: TaskName;
  readonly state: Run["state"];
}

/** Runs whose end a call requested, or with `dryRun` would request. */
export interface CancelResult {
  readonly count: number;
  /** Number of tasks that they belong to. */
  readonly tasks: number;
  /** The first ten runs, as they were before. */
  readonly sample: readonly CancelledRun[];
  /** Named tasks that could not be found. */
  readonly refused: { readonly count: number; readonly sample: readonly BulkRefusal[] };
}

/** Runs, and entries of samples, at a time. */
const [CHUNK, SAMPLE] = [100, 10];

/** @throws `INVALID_OPTION` */
export async function cancelAll(
  scope: Scope,
  filter: BulkFilter,
  options: BulkOptions & AuthorOptions,
): Promise<CancelResult> {
  assertOptions(options, ["dryRun", "by"]);
  const by = scope.author(options.by);
  const checked = checkedFilter(scope, filter);
  const { runs } = scope.store;
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
        some.map(({ id }) => (options.dryRun ? "OK" : runs.cancel(name, id, by || scope.actor))),
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
    if (!options.dryRun && done.count > 0) {
      const { owner, tag, queue } = checked;
      const sample = [
        ...new Map(done.sample.map(({ task }) => [`${task.queue}/${task.owner}/${task.id}`, task])).values(),
      ];
      scope.log("cancel", { owner, tag, queue }, by, { count: tasks, sample, details: { runs: done.count } });
    }
  }
  return { ...done.result, tasks, refused: refused.result };
}
