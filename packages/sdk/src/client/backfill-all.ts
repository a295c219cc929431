import { randomBytes } from "node:crypto";
import { CarillonError, type TaskName } from "@carillon/core";
import { assertOptions, assertOverlap, quote, type TimeRange } from "@carillon/core/internal";
import { type NewBackfill, newToken, type StoredTask } from "@carillon/store";
import { instant } from "../instant.js";
import {
  BACKFILL_ONLY,
  type BackfillOnly,
  type BackfillOptions,
  countTimes,
  rangesOf,
} from "./backfill-times.js";
import {
  type BulkFilter,
  type BulkRefusal,
  checkedFilter,
  nameOf,
  refusalOf,
  selected,
  Tally,
} from "./bulk.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";

export interface BackfillAllOptions extends Omit<BackfillOptions, "every"> {
  /** Occurrences a minute, of all tasks together: above 0, at most 60,000. Required unless `dryRun`. */
  readonly perMinute?: number | undefined;
}

/** The answer of `client.backfills.startAll`. */
export interface BackfillAllResult {
  /** Number of tasks with such occurrences. */
  readonly count: number;
  /** Occurrences of all of them. */
  readonly total: number;
  /** The first ten of these tasks. */
  readonly sample: readonly (TaskName & { readonly total: number })[];
  readonly refused: { readonly count: number; readonly sample: readonly BulkRefusal[] };
  /** Id for `list` and `cancel`. Undefined: nothing was started. */
  readonly batch: string | undefined;
}

/** Limits beyond which a call is more likely a mistake: occurrences of one task, of all, and tasks. */
const [MOST, MOST_IN_ALL, MOST_TASKS] = [100_000, 1_000_000, 10_000];
/** Backfills stored, and entries of samples, at a time. */
const [CHUNK, SAMPLE] = [100, 10];
const MINUTE = 60_000;

/** The past times of a task that are to run. */
export interface Times {
  readonly name: TaskName;
  readonly taskCreated: number;
  readonly total: number;
  readonly ranges: readonly TimeRange[];
}

type Given = Pick<BackfillOptions, "overlap"> & {
  readonly from: number;
  readonly to: number;
  readonly only: BackfillOnly | undefined;
};

/** @throws `INVALID_OPTION` */
export function rangeOf({
  overlap,
  only,
  ...options
}: Pick<BackfillOptions, "from" | "to" | "overlap" | "only">): Given {
  const [from, to] = [instant(options.from, "from"), instant(options.to, "to")];
  if (from > to) throw fault("from", "after to.", "Give the earlier time first.");
  assertOverlap(overlap);
  if (only !== undefined && !BACKFILL_ONLY.includes(only))
    throw fault("only", `got ${quote(only)}.`, `Use one of ${BACKFILL_ONLY.join(", ")}.`);
  return { from, to, overlap, only };
}

/** @throws `INVALID_OPTION` */
export async function timesOf(
  scope: Scope,
  task: StoredTask,
  { from, to, only, now }: Given & { readonly now: number },
  slice: TimeSlice,
): Promise<Times> {
  if (to > now) throw fault("to", "in the future.", "A backfill runs past times only.");
  const schedule = scope.store.calendars.schedules.get(task.definition);
  if (schedule.delay !== undefined)
    throw fault("task", "its times follow from its runs.", "Trigger it instead.");
  const ranges = only === undefined ? [[from, to] as const] : await rangesOf(scope, task, only, [from, to]);
  const pass = () => slice.pass().then(() => true);
  const { count } = await countTimes(task, schedule, ranges, MOST, slice, pass);
  if (count > MOST) throw fault("to", `more than ${MOST} occurrences.`, "Give a shorter range.");
  return { name: nameOf(task), taskCreated: task.created, total: count, ranges };
}

/** @throws `INVALID_OPTION` */
export async function backfillAll(
  scope: Scope,
  filter: BulkFilter,
  options: BackfillAllOptions,
): Promise<BackfillAllResult> {
  assertOptions(options, ["from", "to", "dryRun", "overlap", "perMinute", "only", "by"]);
  const author = scope.author(options.by);
  const given = rangeOf(options);
  const { dryRun, perMinute } = options;
  if (perMinute !== undefined || !dryRun) assertRate(perMinute);
  const checked = checkedFilter(scope, filter);
  const { store } = scope;
  await store.calendars.refresh();
  const now = await store.freezes.time();
  if (given.to > now) throw fault("to", "in the future.", "A backfill runs past times only.");
  const [found, refused, slice] = [[] as Times[], new Tally<BulkRefusal>(SAMPLE), new TimeSlice()];
  let total = 0;
  for await (const page of selected(scope, checked, undefined, refused)) {
    for (const task of page) {
      const times = await timesOf(scope, task, { ...given, now }, slice).catch((error: unknown) =>
        refusalOf(nameOf(task), error),
      );
      if ("code" in times) refused.add(times);
      else if (times.total > 0) {
        found.push(times);
        total += times.total;
      }
      if (found.length > MOST_TASKS || total > MOST_IN_ALL) throw tooMany();
    }
  }
  const sample = found.slice(0, SAMPLE).map(({ name, total }) => ({ ...name, total }));
  const answer = { count: found.length, total, sample, refused: refused.result };
  if (dryRun || perMinute === undefined || total === 0) return { ...answer, batch: undefined };
  const { from, to, overlap, only } = given;
  const batch = newBatch();
  const more = { overlap, by: author || scope.actor, batch };
  const all = paced(found, perMinute).map(
    ({ times: { name: task, taskCreated, ranges, total }, every, after }) => ({
      backfill: {
        ...{ ...more, id: newToken(), task, taskCreated },
        ...{ from, to, at: from - 1, total, every },
        ...(only && { ranges }),
      },
      after,
    }),
  );
  const { owner, tag, queue } = checked;
  const names = sample.map(({ total: _, ...name }) => name);
  const details = { batch, from, to, total, perMinute, overlap, only };
  try {
    await putAll(scope, all);
  } finally {
    // Also if Redis failed halfway: the batch can be cancelled.
    scope.log("backfill", { owner, tag, queue }, author, { count: found.length, sample: names, details });
  }
  return { ...answer, batch };
}

/**
 * Paces such that all tasks together run `perMinute`, evenly, and end at the same time: if a task has `n` occurrences,
 * each takes an `n`-th of that time. First steps are spread over it by the golden ratio.
 */
export function paced<One extends Pick<Times, "total">>(
  all: readonly One[],
  perMinute: number,
): { readonly times: One; readonly every: number; readonly after: number }[] {
  const total = all.reduce((sum, times) => sum + times.total, 0);
  const lasts = (total / perMinute) * MINUTE;
  return all.map((times, i) => {
    const every = Math.max(1, Math.round(lasts / times.total));
    return { times, every, after: Math.floor(every * ((i * GOLDEN) % 1)) };
  });
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

async function putAll(
  { store }: Scope,
  all: readonly { readonly backfill: NewBackfill; readonly after: number }[],
): Promise<void> {
  for (let at = 0; at < all.length; at += CHUNK)
    await Promise.all(
      all.slice(at, at + CHUNK).map(({ backfill, after }) => store.backfills.put(backfill, after)),
    );
}

export function newBatch(): string {
  return `b-${randomBytes(6).toString("hex")}`;
}

export function isBatch(id: unknown): id is string {
  return typeof id === "string" && /^b-[0-9a-f]{12}$/.test(id);
}

/** @throws `INVALID_OPTION` */
export function assertRate(perMinute: unknown): asserts perMinute is number {
  if (typeof perMinute === "number" && perMinute > 0 && perMinute <= MINUTE) return;
  const what = perMinute === undefined ? "missing." : `got ${quote(perMinute)}.`;
  throw fault("perMinute", what, "Give the occurrences a minute of all tasks together, at most 60000.");
}

function tooMany(): CarillonError {
  const what = `more than ${MOST_TASKS} tasks, or ${MOST_IN_ALL} occurrences.`;
  return new CarillonError("INVALID_OPTION", what, {
    remedy: "Give a shorter range, or select fewer tasks.",
  });
}

function fault(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}
