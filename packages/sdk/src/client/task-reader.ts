import { ALERTS_QUEUE, CarillonError, type Run, type TaskRef } from "@carillon/core";
import { assertName, assertOptions, quote } from "@carillon/core/internal";
import { nextOf, type TaskPage as StoredPage, type StoredTask, type TaskFilter } from "@carillon/store";
import { assertCursor, assertState, notFound, outcomesOf, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { type StatsPage, statsView, type TaskStatsRow } from "./stats.js";
import type { ListOptions, TaskPage } from "./types.js";
import { lastStatus, openView, type Task, taskView } from "./view.js";

/** Most open runs that are read for a task's display state. */
const MOST_SHOWN = 100;

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function readTask(scope: Scope, ref: TaskRef): Promise<Task> {
  const name = await scope.locate(ref);
  const stored = await scope.store.tasks.get(name);
  if (!stored) throw notFound(name);
  return withStatus(scope, stored);
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export async function listTasks(scope: Scope, options: ListOptions): Promise<TaskPage> {
  const page = await select(scope, options);
  return {
    tasks: await Promise.all(page.tasks.map((task) => withStatus(scope, task))),
    cursor: page.cursor,
  };
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export async function listStats(scope: Scope, options: ListOptions): Promise<StatsPage> {
  const page = await select(scope, options);
  const stats = await scope.store.runs.manyStats(page.tasks.map(({ definition }) => definition));
  const last = await lastDelays(scope, page.tasks, stats);
  const tasks = page.tasks.map((stored, i): TaskStatsRow => {
    const { queue, owner, id } = stored.definition;
    // No attempt is subtracted: both counts of crashes are left out.
    const {
      crashes: _,
      consecutiveCrashes: __,
      ...rest
    } = statsView(stats[i]?.stored ?? {}, stats[i]?.open ?? 0, 0, last.get(stored));
    const task = { queue, owner, id };
    return { task, state: stored.state, nextExecution: nextOf(stored)?.due, ...rest };
  });
  return { tasks, cursor: page.cursor };
}

/** The delays of the last run of each task that has one: one round trip for each queue. */
async function lastDelays(
  { store }: Scope,
  tasks: readonly StoredTask[],
  stats: readonly { readonly stored: Readonly<Record<string, string>> }[],
): Promise<ReadonlyMap<StoredTask, Pick<Run, "lateMs" | "waitMs">>> {
  const byQueue = new Map<string, [task: StoredTask, run: string][]>();
  for (const [i, task] of tasks.entries()) {
    const run = stats[i]?.stored["lastRun"];
    const { queue } = task.definition;
    if (run !== undefined) byQueue.set(queue, [...(byQueue.get(queue) ?? []), [task, run]]);
  }
  const read = [...byQueue].map(async ([queue, runs]) => {
    const delays = await store.runs.delays(
      queue,
      runs.map(([, run]) => run),
    );
    return runs.map(([task], i) => [task, delays[i] ?? {}] as const);
  });
  return new Map((await Promise.all(read)).flat());
}

/** The options of a list that select tasks; those of bulk calls too. */
export const FILTER_FIELDS = ["queue", "owner", "tag", "state", "outcome", "deliveries"] as const;

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export function storedFilter(options: Pick<ListOptions, (typeof FILTER_FIELDS)[number]>): TaskFilter {
  assertState(options.state);
  for (const field of ["queue", "owner", "tag"] as const) {
    if (options[field] !== undefined) assertName(options[field], field);
  }
  const { queue, owner, tag, state, outcome, deliveries } = options;
  const except = deliveries ? undefined : ALERTS_QUEUE;
  return { queue, owner, tag, state, outcomes: outcomesOf(outcome), except };
}

async function select(scope: Scope, options: ListOptions): Promise<StoredPage> {
  assertOptions(options, [...FILTER_FIELDS, "sort", "limit", "cursor"]);
  const limit = wholeNumber(options.limit ?? 100, "limit", 1, 1_000);
  assertCursor(options.cursor);
  const given = storedFilter(options);
  const { sort = "name", state, cursor } = options;
  if (sort !== "name" && sort !== "next") {
    throw new CarillonError("INVALID_OPTION", `got ${quote(sort)}.`, {
      field: "sort",
      remedy: "Use name or next.",
    });
  }
  if (sort === "next" && state !== undefined && state !== "scheduled") {
    throw new CarillonError("INVALID_OPTION", `${state} tasks have no next time.`, {
      field: "state",
      remedy: "Leave out sort, or state.",
    });
  }
  const { store, owner } = scope;
  if (owner !== undefined && options.owner !== undefined && options.owner !== owner) {
    return { tasks: [], cursor: undefined };
  }
  const filter = { ...given, owner: owner ?? given.owner };
  return sort === "next"
    ? store.tasks.listDue(filter, limit, cursor)
    : store.tasks.list(filter, limit, cursor);
}

export async function countTasks(scope: Scope, options: { queue?: string | undefined }): Promise<number> {
  assertOptions(options, ["queue"]);
  const { store, owner } = scope;
  const queues = await scope.queuesOf(options.queue);
  const counts = await Promise.all(queues.map((queue) => store.tasks.count(queue, owner)));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function withStatus({ store }: Scope, stored: StoredTask): Promise<Task> {
  const { queue, owner, id } = stored.definition;
  const name = { queue, owner, id };
  const [{ lastRun }, open] = await Promise.all([
    store.runs.stats(name),
    stored.hasOpenRuns ? store.runs.open(name, MOST_SHOWN) : [],
  ]);
  const [run, runs] = await Promise.all([
    lastRun === undefined ? undefined : store.runs.get(queue, lastRun),
    store.runs.many(queue, open),
  ]);
  return {
    ...taskView(stored),
    ...openView(stored, runs),
    // A run that is retried from outside is not over.
    ...(run?.state === "final" ? { lastStatus: lastStatus(run) } : {}),
  };
}
