import {
  ALERTS_QUEUE,
  type CarillonError,
  type Outcome,
  type Run,
  TASK_STATES,
  type TaskName,
  type TaskRef,
} from "@carillon/core";
import {
  assertName,
  assertOneOf,
  assertOptions,
  FAILURES,
  grouped,
  invalid,
  quote,
} from "@carillon/core/internal";
import {
  type LastRun,
  nextOf,
  type TaskCounts as StoredCounts,
  type TaskPage as StoredPage,
  type StoredTask,
  type TaskFilter,
} from "@carillon/store";
import { CONDITION_NAMES, type Conditions, conditionsOfKind } from "../conditions.js";
import { displaysOf, PATIENCE, readHolds } from "./display.js";
import { assertCursor, notFound, outcomesOf, shortText, wholeNumber } from "./input.js";
import type { Scope } from "./scope.js";
import { type StatsPage, statsView, type TaskStatsRow } from "./stats.js";
import type { ListOptions, TaskPage } from "./types.js";
import { lastStatus, openView, type Task, taskView } from "./view.js";

/** Most open runs that are read for a task's display state. */
const MOST_SHOWN = 100;

/** Number of tasks that each filter of `list` finds. */
export interface TaskCounts extends StoredCounts {
  /** Their last run is a failure. */
  readonly failing: number;
}

/** @throws `TASK_NOT_FOUND`, `AMBIGUOUS_TASK` */
export async function readTask(scope: Scope, ref: TaskRef): Promise<Task> {
  const name = await scope.locate(ref);
  const stored = await scope.store.tasks.get(name);
  if (!stored) throw notFound(name);
  const [task] = await tasksWithStatus(scope, [stored]);
  return task as Task;
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export async function listTasks(scope: Scope, options: ListOptions): Promise<TaskPage> {
  const page = await select(scope, options);
  return {
    tasks: await tasksWithStatus(scope, page.tasks),
    ...(page.unreadable.length > 0 && { unreadable: page.unreadable }),
    cursor: page.cursor,
  };
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export async function listStats(scope: Scope, options: ListOptions): Promise<StatsPage> {
  const page = await select(scope, options);
  const stats = await scope.store.runs.manyStats(page.tasks.map(({ definition }) => definition));
  const last = await lastDelays(scope, page.tasks, stats);
  const rows = page.tasks.map(async (stored, i): Promise<TaskStatsRow> => {
    const { queue, owner, id } = stored.definition;
    const task = { queue, owner, id };
    const of = stats[i]?.stored ?? {};
    const open = stats[i]?.open ?? 0;
    // An attempt under way counts as a crash: where none is counted, or no run is open, there is nothing to read.
    const running = open > 0 && Number(of["crashes"] ?? 0) > 0 ? await runningOf(scope, task) : 0;
    const view = statsView(of, open, running, last.get(stored));
    return { task, state: stored.state, nextExecution: nextOf(stored)?.due, ...view };
  });
  return { tasks: await Promise.all(rows), cursor: page.cursor };
}

async function runningOf({ store }: Scope, task: TaskName): Promise<number> {
  const runs = await store.runs.many(task.queue, await store.runs.open(task));
  return runs.filter(({ state }) => state === "running" || state === "terminating").length;
}

/** The delays of the last run of each task that has one: one round trip for each queue. */
async function lastDelays(
  { store }: Scope,
  tasks: readonly StoredTask[],
  stats: readonly { readonly stored: Readonly<Record<string, string>> }[],
): Promise<ReadonlyMap<StoredTask, Pick<Run, "lateMs" | "waitMs">>> {
  const ran = tasks.flatMap((task, i): [task: StoredTask, run: string][] => {
    const run = stats[i]?.stored["lastRun"];
    return run === undefined ? [] : [[task, run]];
  });
  const byQueue = grouped(ran, ([task]) => task.definition.queue);
  const read = [...byQueue].map(async ([queue, runs]) => {
    const delays = await store.runs.delays(
      queue,
      runs.map(([, run]) => run),
    );
    return runs.map(([task], i) => [task, delays[i] ?? {}] as const);
  });
  return new Map((await Promise.all(read)).flat());
}

/** Checks a filter. @throws `INVALID_OPTION`, `INVALID_NAME` */
export function checkedConditions(options: Conditions): Omit<TaskFilter, "dueBefore"> {
  assertOneOf(options.state, "state", TASK_STATES);
  for (const field of conditionsOfKind("name")) {
    if (options[field] !== undefined) assertName(options[field], field);
  }
  for (const field of conditionsOfKind("flag")) {
    const value = options[field];
    if (value === undefined || typeof value === "boolean") continue;
    throw invalid(field, `got ${quote(value)}.`, "Use true or false.");
  }
  const { queue, owner, tag, set, state, neverRan, search, deliveries } = options;
  const outcomes = endsOf(options);
  const except = deliveries ? undefined : ALERTS_QUEUE;
  return { queue, owner, tag, set, state, outcomes, neverRan, text: searchText(search), except };
}

/** @throws as `checkedConditions` */
export async function storedFilter(scope: Scope, options: Conditions): Promise<TaskFilter> {
  const filter = checkedConditions(options);
  return options.overdue ? { ...filter, dueBefore: await overdueBefore(scope, options.queue) } : filter;
}

async function select(scope: Scope, options: ListOptions): Promise<StoredPage> {
  assertOptions(options, [...CONDITION_NAMES, "sort", "limit", "cursor"]);
  const limit = wholeNumber(options.limit ?? 100, "limit", 1, 1_000);
  assertCursor(options.cursor);
  const given = await storedFilter(scope, options);
  const { sort = "name", state, cursor } = options;
  if (options.neverRan && sort === "last") throw clash("neverRan", "sort last");
  assertOneOf(sort, "sort", ["name", "next", "last"]);
  if (sort === "next" && state !== undefined && state !== "scheduled")
    throw invalid("state", `${state} tasks have no next time.`, "Leave out sort, or state.");
  const { store, owner } = scope;
  if (owner !== undefined && options.owner !== undefined && options.owner !== owner)
    return { tasks: [], unreadable: [], cursor: undefined };
  const filter = { ...given, owner: owner ?? given.owner };
  if (sort === "next") return store.tasks.listDue(filter, limit, cursor);
  if (sort === "last") return store.tasks.listLast(filter, limit, cursor);
  return store.tasks.list(filter, limit, cursor);
}

/** @throws `INVALID_OPTION` */
function searchText(search: string | undefined): string | undefined {
  const text = shortText(search, "search");
  if (!/[\n\r\t]/.test(text)) return text.toLowerCase() || undefined;
  throw invalid("search", "more than one line, or a tab.", "Give a part of an owner/id or a type.");
}

/** The outcomes that a filter asks for; undefined: any. @throws `INVALID_OPTION`, also for conditions that exclude each other */
function endsOf({ outcome, failing, neverRan }: Conditions): ReadonlySet<Outcome> | undefined {
  if (failing && outcome !== undefined) throw clash("failing", "outcome");
  if (neverRan && outcome !== undefined) throw clash("neverRan", "outcome");
  if (neverRan && failing) throw clash("neverRan", "failing");
  return outcomesOf(failing ? [...FAILURES] : outcome);
}

function clash(field: string, other: string): CarillonError {
  return invalid(field, `cannot be combined with ${other}.`, "Leave one of the two out.");
}

/** An occurrence that was due before this time is overdue. UTC ms. */
async function overdueBefore(scope: Scope, asked: string | undefined): Promise<number> {
  const [queue] = await scope.queuesOf(asked);
  return queue === undefined ? 0 : (await scope.store.tasks.time(queue)) - PATIENCE;
}

export type CountOptions = Pick<ListOptions, "queue" | "owner" | "tag" | "deliveries">;

/** @throws `INVALID_OPTION`, `INVALID_NAME`, `FORBIDDEN` */
export async function countByFilter(scope: Scope, options: CountOptions): Promise<TaskCounts> {
  assertOptions(options, ["queue", "owner", "tag", "deliveries"]);
  const filter = checkedConditions(scope.bind(options));
  const counts = await scope.store.tasks.counts(filter, await overdueBefore(scope, options.queue));
  const failing = [...FAILURES].reduce((sum, outcome) => sum + counts.outcomes[outcome], 0);
  return { ...counts, failing };
}

export async function countTasks(scope: Scope, options: { queue?: string | undefined }): Promise<number> {
  assertOptions(options, ["queue"]);
  const { store, owner } = scope;
  const queues = await scope.queuesOf(options.queue);
  const counts = await Promise.all(queues.map((queue) => store.tasks.count(queue, owner)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Tasks as `get` and `list` answer them: with their last and open runs, and what they do or wait for. */
export async function tasksWithStatus(scope: Scope, tasks: readonly StoredTask[]): Promise<Task[]> {
  const { store } = scope;
  const [last, runs, holds] = await Promise.all([
    store.runs.last(tasks.map(({ definition }) => definition)),
    Promise.all(
      tasks.map(async ({ definition, hasOpenRuns }) =>
        hasOpenRuns ? store.runs.many(definition.queue, await store.runs.open(definition, MOST_SHOWN)) : [],
      ),
    ),
    readHolds(scope),
  ]);
  const seen = tasks.map((stored, i) => ({ stored, runs: runs[i] ?? [], failing: last[i]?.failing }));
  const displays = await displaysOf(scope, seen, holds);
  return seen.map(({ stored, runs }, i): Task => {
    const { run, checked } = last[i] as LastRun;
    return {
      ...taskView(stored),
      ...openView(stored, runs),
      display: displays[i],
      // A run that is retried from outside is not over.
      ...(run?.state === "final" ? { lastStatus: lastStatus(run) } : {}),
      ...(checked !== undefined && checked > (run?.finished ?? 0) ? { lastChecked: checked } : {}),
    };
  });
}
