import type { TaskName } from "@carillon/core";
import { invalid, scheduleSteps, type TaskSchedule, type TimeRange } from "@carillon/core/internal";
import { instant as instantOf, type Scope } from "@carillon/sdk/internal";
import type { Store, StoredTask } from "@carillon/store";
import type { z } from "zod";
import { nameOf } from "../bulk/bulk.js";
import type { TimeSlice } from "../occurrences/time-slice.js";
import { type Counted, countTimes, timesIn } from "../occurrences/walk.js";
import { count, dryRun, instant, oneOf, overlap } from "../shapes.js";
import { type Backfills, backfillsOf, Doings } from "./doings.js";

/** Past occurrences to run. */
export const range = {
  from: instant.describe("First nominal time."),
  to: instant.describe("Last nominal time, not in the future."),
  dryRun,
  overlap: overlap.optional().describe("Instead of the task's overlap policy."),
  only: oneOf(["failed", "frozen", "missed", "paused", "overlap"])
    .optional()
    .describe(
      "Only occurrences whose runs failed, or that were skipped for this reason; not those that were run since, as far as records are kept.",
    ),
};

export const left = count
  .optional()
  .describe(
    "Occurrences that `only` leaves out: a run of them succeeded since or is open, or a retry or another backfill has them. Missing without `only`.",
  );
type Given = Pick<z.output<z.ZodObject<typeof range>>, "overlap" | "only"> & { from: number; to: number };
type Only = NonNullable<Given["only"]>;

/** Most occurrences of one task. More are rather a mistake. */
const MOST = 100_000;

/** The past times of a task that are to run. */
export interface Times {
  readonly name: TaskName;
  readonly taskCreated: number;
  readonly total: number;
  readonly left: number;
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

/**
 * @param slice of any number of steps
 * @param backfills of the task's queue; for `only`
 * @throws `INVALID_OPTION`
 */
export async function timesOf(
  { store }: Scope,
  task: StoredTask,
  { from, to, only, now }: Given & { readonly now: number },
  backfills: Backfills,
  slice: TimeSlice,
): Promise<Times> {
  if (to > now) throw invalid("to", "in the future.", "A backfill runs past times only.");
  const schedule = store.calendars.schedules.get(task.definition);
  if (schedule.delay !== undefined)
    throw invalid("task", "its times follow from its runs.", "Trigger it instead.");
  const its = { name: nameOf(task), taskCreated: task.created };
  const tooLong = () => invalid("to", `more than ${MOST} occurrences.`, "Give a shorter range.");
  if (only === undefined) {
    const ranges = [[from, to] as const];
    const { count } = await countTimes(task, schedule, ranges, MOST, slice);
    if (count > MOST) throw tooLong();
    return { ...its, total: count, left: 0, ranges };
  }
  const doings = await Doings.of(store, task, backfills);
  const asked = merged(await rangesOf(store, task, only, doings), [from, to]);
  const { count, left, ranges } = await undone(task, schedule, asked, doings, MOST, slice);
  if (count > MOST) throw tooLong();
  return { ...its, total: count, left, ranges };
}

/** For a call with `only`: the backfills of these queues, and the turn with which it puts its own. */
export async function othersOf(
  store: Store,
  queues: readonly string[],
  { only, dryRun }: { readonly only: Only | undefined; readonly dryRun: boolean | undefined },
): Promise<{ readonly turn?: string | undefined; readonly backfills: Backfills }> {
  if (only === undefined) return { backfills: new Map() };
  const turn = dryRun ? undefined : await store.backfills.takeTurn(queues);
  return { turn, backfills: await backfillsOf(store, queues) };
}

/** Nominal times that need another run, and those that do not. */
export interface Undone extends Counted {
  readonly left: number;
  readonly ranges: readonly TimeRange[];
}

/** The nominal times in some ranges that are not done. @param asked as `merged` returns them @param most stops above that many */
export async function undone(
  task: StoredTask,
  schedule: TaskSchedule,
  asked: readonly TimeRange[],
  doings: Doings,
  most: number,
  slice: TimeSlice,
): Promise<Undone> {
  if (!doings.knows(asked))
    return { ...(await countTimes(task, schedule, asked, most, slice)), left: 0, ranges: asked };
  const ranges: [number, number][] = [];
  let [count, left, isFollowing] = [0, 0, false];
  for await (const time of slice.over(timesIn(schedule, asked), scheduleSteps(task.definition.schedule))) {
    const isDone = doings.isDone(`@${time}`);
    const last = ranges.at(-1);
    if (isDone) left += 1;
    else if (isFollowing && last) last[1] = time;
    else ranges.push([time, time]);
    isFollowing = !isDone;
    if (!isDone && ++count > most) return { count, exact: false, left, ranges };
  }
  return { count, exact: !slice.spent, left, ranges };
}

/** The nominal times that failed or were skipped, as far as records are kept. */
async function rangesOf(
  { runs }: Store,
  task: StoredTask,
  only: Only,
  { failed }: Doings,
): Promise<TimeRange[]> {
  if (only === "failed")
    return [...failed.values()]
      .filter(({ trigger }) => trigger !== "manual" && trigger !== "self")
      .map(({ nominal }): TimeRange => [nominal, nominal]);
  return (await runs.ledger(task.definition))
    .filter(({ reason }) => reason === only)
    .map((entry): TimeRange => [entry.from, entry.to]);
}

/** Ranges in order, apart from each other. @param range cuts them. Default: as they are */
export function merged(
  ranges: readonly TimeRange[],
  [from, to]: TimeRange = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
): TimeRange[] {
  const inside = ranges
    .map(([first, last]): [number, number] => [Math.max(first, from), Math.min(last, to)])
    .filter(([first, last]) => first <= last);
  const all: [number, number][] = [];
  for (const [first, last] of inside.sort((a, b) => a[0] - b[0])) {
    const before = all.at(-1);
    if (before && first <= before[1]) before[1] = Math.max(before[1], last);
    else all.push([first, last]);
  }
  return all;
}
