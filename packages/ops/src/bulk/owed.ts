import { DEFAULT_CATCH_UP_GRACE, parseDuration, type TaskSchedule } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import type { TimeSlice } from "../occurrences/time-slice.js";
import { type Counted, countTimes } from "../occurrences/walk.js";

/** Most occurrences of one task that are counted, or run by a backfill. */
export const MOST_OWED = 100_000;

/** Occurrences of a task that are due and not decided. Nominal times in UTC ms. */
export interface Owed {
  readonly count: Counted;
  readonly from: number;
  readonly to: number;
  /** Whether it can owe one at a time only: a single time, or a delay after each run. */
  readonly single: boolean;
}

/** Counts within the steps of a slice. */
export interface Counting {
  readonly now: number;
  readonly slice: TimeSlice;
}

const ONE: Counted = { count: 1, exact: true };

/** Counts the owed occurrences of a task. Undefined: it owes none. */
export async function owedBy(
  task: StoredTask,
  schedule: TaskSchedule,
  { now, slice }: Counting,
): Promise<Owed | undefined> {
  const { definition, nominal: from, due = from, fired } = task;
  if (from === undefined || due === undefined || due > now || schedule.spent(fired)) return undefined;
  const single = schedule.delay !== undefined || "at" in definition.schedule;
  if (single) return { count: ONE, from, to: from, single };
  const to = Math.max(schedule.latestDue(now) ?? from, from);
  const { count, exact } = await countTimes(task, schedule, [[from, to]], MOST_OWED, slice);
  const left = (definition.schedule.maxRuns ?? Number.POSITIVE_INFINITY) - fired;
  const known = exact || count >= left;
  return { count: { count: Math.max(1, Math.min(count, left)), exact: known }, from, to, single };
}

/** The owed occurrences that the task's catch-up policy keeps. */
export async function keptOf(
  task: StoredTask,
  schedule: TaskSchedule,
  { count, from, to }: Owed,
  { now, slice }: Counting,
): Promise<Counted> {
  const { catchUp, catchUpLimits: { window, max } = {} } = task.definition;
  const oldest = window === undefined ? from : Math.max(from, now - parseDuration(window));
  const late = count.count > 1 || now - to > DEFAULT_CATCH_UP_GRACE;
  if ((catchUp === "skip" && late) || to < oldest) return { count: 0, exact: true };
  if (catchUp !== "all") return ONE;
  const inside = oldest === from ? count : await countTimes(task, schedule, [[oldest, to]], MOST_OWED, slice);
  return max !== undefined && max <= inside.count ? { count: max, exact: true } : inside;
}
