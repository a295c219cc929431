import { ALERTS_QUEUE, type TaskRef } from "@carillon/core";
import { assertName, assertOptions } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import { assertCursor, assertState, notFound, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
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

/** @throws `INVALID_OPTION`, `INVALID_NAME`, `INVALID_OPTION` */
export async function listTasks(scope: Scope, options: ListOptions): Promise<TaskPage> {
  assertOptions(options, ["queue", "owner", "tag", "state", "deliveries", "limit", "cursor"]);
  const limit = wholeNumber(options.limit ?? 100, "limit", 1, 1_000);
  assertState(options.state);
  assertCursor(options.cursor);
  for (const field of ["queue", "owner", "tag"] as const) {
    if (options[field] !== undefined) assertName(options[field], field);
  }
  const { store, owner } = scope;
  if (owner !== undefined && options.owner !== undefined && options.owner !== owner) {
    return { tasks: [], cursor: undefined };
  }
  const except = options.deliveries ? undefined : ALERTS_QUEUE;
  const filter = { ...options, owner: owner ?? options.owner, except };
  const page = await store.tasks.list(filter, limit, options.cursor);
  return {
    tasks: await Promise.all(page.tasks.map((task) => withStatus(scope, task))),
    cursor: page.cursor,
  };
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
