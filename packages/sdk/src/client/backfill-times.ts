import type { Duration, OverlapPolicy, Run } from "@carillon/core";
import {
  fixedInterval,
  isFailure,
  nextStep,
  scheduleSteps,
  type TaskSchedule,
  type TimeRange,
} from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import type { Scope } from "./scope.js";
import type { TimeSlice } from "./time-slice.js";

/** Occurrences to select: whose runs failed, or that were skipped for this reason. */
export const BACKFILL_ONLY = ["failed", "frozen", "missed", "paused", "overlap"] as const;
export type BackfillOnly = (typeof BACKFILL_ONLY)[number];

export interface BackfillOptions {
  /** The nominal times, both included: ISO 8601, a Date or epoch ms. Neither may be in the future. */
  readonly from: string | number | Date;
  readonly to: string | number | Date;
  /** Count only. */
  readonly dryRun?: boolean | undefined;
  /** Instead of the task's overlap policy. */
  readonly overlap?: OverlapPolicy | undefined;
  /** At most one occurrence in this time, `10s`; default: as fast as they can be. */
  readonly every?: Duration | undefined;
  /**
   * Only occurrences whose runs failed (and none succeeded since), or that were skipped for this reason, as far as
   * records are kept. Default: all.
   */
  readonly only?: BackfillOnly | undefined;
  /** The name to record as the requester; default: this client's. */
  readonly by?: string | undefined;
}

/** Runs read at once, and in all. */
const [PAGE, MOST_RUNS] = [1_000, 20_000];

/** The nominal times from `from` to `to` that failed or were skipped, as far as records are kept; in order. */
export async function rangesOf(
  { store }: Scope,
  task: StoredTask,
  only: BackfillOnly,
  [from, to]: TimeRange,
): Promise<TimeRange[]> {
  const found =
    only === "failed"
      ? await failedTimes(store.runs, task)
      : (await store.runs.ledger(task.definition))
          .filter(({ reason }) => reason === only)
          .map((entry): TimeRange => [entry.from, entry.to]);
  const inside = found
    .map(([first, last]): TimeRange => [Math.max(first, from), Math.min(last, to)])
    .filter(([first, last]) => first <= last);
  return merged(inside);
}

/** Times of the schedule with a failed run, without a successful or an open one, and without a pending retry. */
async function failedTimes(
  runs: Scope["store"]["runs"],
  { definition: name, pending }: StoredTask,
): Promise<TimeRange[]> {
  const failed = new Set<number>();
  const others = new Set(pending.map(({ nominal }) => nominal));
  for (let offset = 0; offset < MOST_RUNS; offset += PAGE) {
    const page = await runs.list(name, PAGE, offset);
    for (const run of page) {
      if (run.trigger === "manual" || run.trigger === "self") continue;
      (hasFailed(run) ? failed : others).add(run.nominal);
    }
    if (page.length < PAGE) break;
  }
  return [...failed].filter((time) => !others.has(time)).map((time) => [time, time]);
}

function hasFailed({ state, outcome }: Run): boolean {
  return state === "final" && outcome !== undefined && isFailure(outcome);
}

function merged(ranges: readonly TimeRange[]): TimeRange[] {
  const all: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = all.at(-1);
    if (before && first <= before[1]) before[1] = Math.max(before[1], last);
    else all.push([first, last]);
  }
  return all;
}

/** A number of occurrences; not `exact`: there are at least that many. */
export interface Counted {
  readonly count: number;
  readonly exact: boolean;
}

/**
 * Counts nominal times, without walking if their distance is fixed.
 *
 * @param most stops above that many @param goOn ends a slice of the walk; false: stop
 */
export async function countTimes(
  { definition }: StoredTask,
  schedule: TaskSchedule,
  ranges: readonly TimeRange[],
  most: number,
  slice: TimeSlice,
  goOn: () => Promise<boolean>,
): Promise<Counted> {
  const interval = fixedInterval(definition.schedule);
  if (interval !== undefined) {
    const counts = ranges.map(([from, to]) => {
      const [first, last] = [schedule.next(from - 1), schedule.latest(to)];
      return first === undefined || last === undefined || last < first ? 0 : (last - first) / interval + 1;
    });
    return { count: counts.reduce((sum, count) => sum + count, 0), exact: true };
  }
  const to = ranges.at(-1)?.[1] ?? 0;
  const steps = scheduleSteps(definition.schedule);
  let count = 0;
  let at = (ranges[0]?.[0] ?? 0) - 1;
  for (;;) {
    const next = nextStep(schedule, { at, to, ranges });
    if (next === undefined) return { count, exact: true };
    count += 1;
    at = next;
    if (count > most || (slice.took(steps) && !(await goOn()))) return { count, exact: false };
  }
}
