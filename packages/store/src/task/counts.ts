import { OUTCOMES, type Outcome, type TaskState } from "@carillon/core";
import type { QueueKeys } from "../keys.js";
import { type Condition, type NameSets, sum } from "./name-sets.js";

/** Number of tasks by filter. */
export interface TaskCounts {
  readonly all: number;
  readonly states: Readonly<Record<TaskState, number>>;
  /** By the outcome of the last run, as in `TaskFilter`. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  readonly neverRan: number;
  readonly overdue: number;
}

/** Numbers of tasks: all, paused, finished, overdue, then by outcome. */
type Row = readonly number[];

/** Counts all tasks of a queue, with one command per index. */
export async function countAll(sets: NameSets, keys: QueueKeys, dueBefore: number): Promise<Row> {
  const conditions = [{ sets: [keys.tasks], wanted: true }, ...groupsOf(keys, dueBefore)];
  return Promise.all(conditions.map((one) => sets.size(one)));
}

export async function countThese(
  sets: NameSets,
  keys: QueueKeys,
  locals: readonly string[],
  dueBefore: number,
): Promise<Row> {
  const found = await Promise.all(groupsOf(keys, dueBefore).map((one) => sets.meet(keys, locals, one)));
  return [locals.length, ...found.map((meets) => meets.filter(Boolean).length)];
}

function groupsOf(keys: QueueKeys, dueBefore: number): Condition[] {
  return [
    { sets: [keys.inState("paused")], wanted: true },
    { sets: [keys.inState("finished")], wanted: true },
    { sets: keys.dues, wanted: true, below: dueBefore },
    ...OUTCOMES.map((outcome) => ({ sets: [keys.lastOutcome(outcome)], wanted: true })),
  ];
}

export function totalOf(rows: readonly Row[]): TaskCounts {
  const column = (n: number) => sum(rows.map((row) => row[n] ?? 0));
  const [all, paused, finished, overdue] = [column(0), column(1), column(2), column(3)];
  const ended = OUTCOMES.map((outcome, i) => [outcome, column(4 + i)] as const);
  return {
    all,
    states: { scheduled: all - paused - finished, paused, finished },
    outcomes: Object.fromEntries(ended) as Record<Outcome, number>,
    neverRan: all - sum(ended.map(([, count]) => count)),
    overdue,
  };
}
