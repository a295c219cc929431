import type { Run, TaskName, TaskRef } from "@carillon/core";
import { usualMsOf } from "@carillon/store";
import { matches } from "./journal.js";
import type { Scope } from "./scope.js";

/** Runs under way that are to be listed: those of all tasks, or of one task, queue or owner. */
export interface RunningFilter {
  readonly task?: TaskRef | undefined;
  readonly queue?: string | undefined;
  /** Owner of the tasks. Default: the client's, or any. */
  readonly owner?: string | undefined;
  /** Only runs with this text in the task's name or its type, in any case. */
  readonly text?: string | undefined;
  /** At most this many; default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

/** A run that is under way. */
export interface RunningRun extends Run {
  /** Time since its start, in ms. */
  readonly runningMs: number;
  /** The usual duration of its task: mean of the runs that succeeded, in ms. Undefined: there are none. */
  readonly usualMs: number | undefined;
}

/**
 * Number of jobs of a queue whose runs are read: more than its workers can hold, except for fan-outs with thousands of
 * concurrent items.
 */
const MOST_JOBS = 1_000;

/** The runs that are under way, by their start, longest first. */
export async function running(
  { store, queues }: Pick<Scope, "store"> & { readonly queues: readonly string[] },
  filter: Pick<RunningFilter, "owner" | "text"> & { readonly task?: TaskName | undefined },
  limit: number,
): Promise<RunningRun[]> {
  const [now, ...found] = await Promise.all([
    store.serverTime(),
    ...queues.map(async (queue) => store.runs.many(queue, await store.queues.held(queue, MOST_JOBS))),
  ]);
  const runs = found
    .flat()
    // The record of a run whose items are being processed says `queued`: it waits for them.
    .filter(({ state, started }) => state !== "final" && started !== undefined)
    .filter((run) => matches(run, filter))
    .sort((a, b) => (a.started ?? 0) - (b.started ?? 0) || (a.id < b.id ? -1 : 1))
    .slice(0, limit);
  const stats = await store.runs.manyStats(runs.map((run) => run.task));
  return runs.map((run, i) => ({
    ...run,
    runningMs: Math.max(0, now - (run.started ?? now)),
    usualMs: usualMsOf(stats[i]?.stored ?? {}),
  }));
}
