import type { Run, TaskName } from "@carillon/core";
import { invalid, isFailure, originOf, type TimeRange } from "@carillon/core/internal";
import { instant as instantOf, type Scope } from "@carillon/sdk/internal";
import type { StoredTask } from "@carillon/store";
import type { z } from "zod";
import { nameOf } from "../bulk/bulk.js";
import type { TimeSlice } from "../occurrences/time-slice.js";
import { countTimes } from "../occurrences/walk.js";
import { dryRun, instant, oneOf, overlap } from "../shapes.js";

/** Past occurrences to run. */
export const range = {
  from: instant.describe("First nominal time."),
  to: instant.describe("Last nominal time, not in the future."),
  dryRun,
  overlap: overlap.optional().describe("Instead of the task's overlap policy."),
  only: oneOf(["failed", "frozen", "missed", "paused", "overlap"])
    .optional()
    .describe(
      "Only occurrences whose runs failed (and none succeeded since), or that were skipped for this reason, as far as records are kept.",
    ),
};
type Given = Pick<z.output<z.ZodObject<typeof range>>, "overlap" | "only"> & { from: number; to: number };
type Only = NonNullable<Given["only"]>;

/** Most occurrences of one task. More are rather a mistake. */
const MOST = 100_000;

/** The past times of a task that are to run. */
export interface Times {
  readonly name: TaskName;
  readonly taskCreated: number;
  readonly total: number;
  readonly ranges: readonly TimeRange[];
}

/** @throws `INVALID_OPTION` */
export function rangeOf(
  given: Omit<Given, "from" | "to"> & Record<"from" | "to", z.output<typeof instant>>,
): Given {
  const [from, to] = [instantOf(given.from, "from"), instantOf(given.to, "to")];
  if (from > to) throw invalid("from", "after to.", "Give the earlier time first.");
  return { from, to, overlap: given.overlap, only: given.only };
}

/** @param slice of any number of steps @throws `INVALID_OPTION` */
export async function timesOf(
  scope: Scope,
  task: StoredTask,
  { from, to, only, now }: Given & { readonly now: number },
  slice: TimeSlice,
): Promise<Times> {
  if (to > now) throw invalid("to", "in the future.", "A backfill runs past times only.");
  const schedule = scope.store.calendars.schedules.get(task.definition);
  if (schedule.delay !== undefined)
    throw invalid("task", "its times follow from its runs.", "Trigger it instead.");
  const ranges = only === undefined ? [[from, to] as const] : await rangesOf(scope, task, only, [from, to]);
  const { count } = await countTimes(task, schedule, ranges, MOST, slice);
  if (count > MOST) throw invalid("to", `more than ${MOST} occurrences.`, "Give a shorter range.");
  return { name: nameOf(task), taskCreated: task.created, total: count, ranges };
}

/** Runs read at once, and in all. */
const [PAGE, MOST_RUNS] = [1_000, 20_000];

/** The nominal times from `from` to `to` that failed or were skipped, as far as records are kept; in order. */
async function rangesOf(
  { store }: Scope,
  task: StoredTask,
  only: Only,
  [from, to]: TimeRange,
): Promise<TimeRange[]> {
  const found =
    only === "failed"
      ? (await failedRuns(store.runs, task))
          .filter(({ trigger }) => trigger !== "manual" && trigger !== "self")
          .map(({ nominal }): TimeRange => [nominal, nominal])
      : (await store.runs.ledger(task.definition))
          .filter(({ reason }) => reason === only)
          .map((entry): TimeRange => [entry.from, entry.to]);
  const inside = found
    .map(([first, last]): TimeRange => [Math.max(first, from), Math.min(last, to)])
    .filter(([first, last]) => first <= last);
  return merged(inside);
}

/**
 * The newest failed run of each occurrence that has no run of another outcome, no open run and no pending retry; as far as
 * records are kept.
 */
export async function failedRuns(
  runs: Scope["store"]["runs"],
  { definition: name, pending }: StoredTask,
): Promise<Run[]> {
  const failed = new Map<string, Run>();
  const others = new Set(pending.map(({ key }) => originOf(key)));
  for (let offset = 0; offset < MOST_RUNS; offset += PAGE) {
    const page = await runs.list(name, PAGE, offset);
    for (const run of page) {
      const origin = originOf(run.key);
      if (!hasFailed(run)) others.add(origin);
      else if (!failed.has(origin)) failed.set(origin, run);
    }
    if (page.length < PAGE) break;
  }
  return [...failed].filter(([origin]) => !others.has(origin)).map(([, run]) => run);
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
