import type { Run } from "@carillon/core";
import { isFailure, originOf, type TimeRange } from "@carillon/core/internal";
import type { Backfill, Store, StoredTask } from "@carillon/store";
import { keyOf } from "../bulk/bulk.js";

/** Runs read at once, and in all. */
const [PAGE, MOST_RUNS] = [1_000, 20_000];

/** The backfills of some queues, by task. */
export type Backfills = ReadonlyMap<string, readonly Backfill[]>;

/** Call it before `Doings.of`: an occurrence that is enqueued between the two is then known by its backfill or by its run. */
export async function backfillsOf({ backfills }: Store, queues: readonly string[]): Promise<Backfills> {
  const found = new Map<string, Backfill[]>();
  for (const queue of queues) {
    for await (const page of backfills.all(queue)) {
      for (const one of page) {
        const its = found.get(keyOf(one.task)) ?? [];
        found.set(keyOf(one.task), its);
        its.push(one);
      }
    }
  }
  return found;
}

/** An occurrence among those of its task: `@` and its nominal time, or the key of a trigger. */
export function whichOf(key: string): string {
  return originOf(key).replace(/^.*@/, "@");
}

/** A backfill, and the place of an occurrence in it. A place above `at` is not decided yet. */
interface Placed {
  readonly backfill: Backfill;
  readonly placeOf: (which: string) => number | undefined;
}

/** Runs of a task's occurrences, as far as records are kept, and the backfills that have run them or will. */
export class Doings {
  /** The newest failed run of each occurrence. */
  readonly failed = new Map<string, Run>();
  /** Occurrences with an open run, a run of another outcome, or a retry that waits. */
  readonly #others: Set<string>;
  readonly #backfills: readonly Placed[];

  /** Without its runs: for `isUnderway` alone. */
  constructor({ definition, created, pending }: StoredTask, backfills: Backfills) {
    this.#others = new Set(pending.map(({ key }) => whichOf(key)));
    this.#backfills = (backfills.get(keyOf(definition)) ?? [])
      .filter(({ taskCreated = created }) => taskCreated === created)
      .map((backfill) => ({ backfill, placeOf: placesIn(backfill) }));
  }

  static async of({ runs }: Store, task: StoredTask, backfills: Backfills): Promise<Doings> {
    const doings = new Doings(task, backfills);
    for (let offset = 0; offset < MOST_RUNS; offset += PAGE) {
      const page = await runs.list(task.definition, PAGE, offset);
      for (const run of page) doings.#add(run);
      if (page.length < PAGE) break;
    }
    return doings;
  }

  #add(run: Run): void {
    const which = whichOf(run.key);
    const { state, outcome } = run;
    if (state !== "final" || outcome === undefined || !isFailure(outcome)) this.#others.add(which);
    else if (!this.failed.has(which)) this.failed.set(which, run);
  }

  /** Whether a running backfill will run it. */
  isUnderway(which: string): boolean {
    return this.#backfills.some(({ backfill: { at, state }, placeOf }) => {
      return state === "running" && (placeOf(which) ?? at) > at;
    });
  }

  /** Whether it needs no further run: a run succeeded or is open, a retry waits, or a backfill has run it or will. */
  isDone(which: string): boolean {
    if (this.#others.has(which) || this.isUnderway(which)) return true;
    const failed = this.failed.get(which);
    // Backfills are kept longer than records of runs.
    return this.#backfills.some(({ backfill: { at, skipped, created }, placeOf }) => {
      const isRun = skipped === 0 && (placeOf(which) ?? Number.POSITIVE_INFINITY) <= at;
      return isRun && !(failed && failed.enqueued >= created);
    });
  }

  /** Whether any run or backfill may be of these ranges. If not, `isDone` is false for all their times. @param ranges in order, apart from each other */
  knows(ranges: readonly TimeRange[]): boolean {
    return (
      this.#backfills.some(({ backfill: one }) =>
        ranges.some(([from, to]) => one.from <= to && one.to >= from),
      ) || [...this.#others].some((which) => isWithin(ranges, Number(which.slice(1))))
    );
  }
}

function placesIn({ runs, from, to, ranges = [[from, to]] }: Backfill): Placed["placeOf"] {
  if (runs === undefined) {
    return (which) => {
      const nominal = Number(which.slice(1));
      return which.startsWith("@") && isWithin(ranges, nominal) ? nominal : undefined;
    };
  }
  const places = new Map(runs.map(({ key }, i) => [whichOf(key), i]));
  return (which) => places.get(which);
}

/** @param ranges in order, apart from each other */
function isWithin(ranges: readonly TimeRange[], time: number): boolean {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle] as TimeRange)[1] < time) low = middle + 1;
    else high = middle;
  }
  const range = ranges[low];
  return range !== undefined && range[0] <= time;
}
