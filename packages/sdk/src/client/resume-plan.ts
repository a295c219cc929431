import type { CatchUpPolicy, TaskName } from "@carillon/core";
import { covers, type Freeze, frozenAt } from "@carillon/core/internal";
import type { StoredTask } from "@carillon/store";
import { type Counted, countTimes } from "./backfill-times.js";
import { type BulkRefusal, checkedFilter, nameOf, type ResumeFilter, selected, Tally } from "./bulk.js";
import { type Counting, keptOf, MOST_OWED, owedBy } from "./owed.js";
import type { Scope } from "./scope.js";
import { TimeSlice } from "./time-slice.js";

/** Occurrences of some tasks; not `exact`: there are at least that many. */
export interface OwedCount extends Counted {
  readonly tasks: number;
}

/** Runs that a resume of many tasks would start. */
export interface ResumePlan {
  /** Number of paused tasks that match, whether they owe anything or not. */
  readonly tasks: number;
  /** Occurrences that fell due during the pauses, in all and by the tasks' catch-up policies. */
  readonly owed: OwedCount;
  readonly policies: Readonly<Record<CatchUpPolicy, OwedCount>>;
  /** Occurrences that each value of `from` starts at once, or with `perMinute` at that pace. */
  readonly starts: Readonly<Record<"now" | "latest" | "catch-up" | "all", Counted>>;
  /** The ten tasks that owe most. */
  readonly most: readonly OwedTask[];
  /**
   * Tasks that match and are overdue, but not paused: once a node claims them, their catch-up policies decide. To
   * choose, pause them first.
   */
  readonly unpaused: OwedCount;
  /**
   * Occurrences that freezes skipped in the last day. They are not owed: to run them, use `backfills.startAll` with
   * `only: "frozen"`.
   */
  readonly frozen: OwedCount & { readonly from?: number | undefined; readonly to?: number | undefined };
  /** The number of tasks that a freeze holds now; resumed ones are held until it ends. */
  readonly held: number;
  /** Named tasks that could not be found. */
  readonly refused: { readonly count: number; readonly sample: readonly BulkRefusal[] };
}

export interface OwedTask extends TaskName {
  readonly catchUp: CatchUpPolicy;
  readonly owed: Counted;
  /** First and last nominal time that it owes, UTC ms. */
  readonly from: number;
  readonly to: number;
}

const DAY = 86_400_000;
/** Tasks that are listed, and entries of a sample. */
const [MOST_LISTED, SAMPLE] = [10, 10];

/** @throws `INVALID_OPTION` */
export async function resumePlan(scope: Scope, filter: ResumeFilter): Promise<ResumePlan> {
  const { note, pausedBy, ...checked } = checkedFilter(scope, filter, ["note", "pausedBy"], "any");
  const { store } = scope;
  const [now, freezes] = await Promise.all([
    store.freezes.time(),
    store.freezes.list(),
    store.calendars.refresh(),
  ]);
  const slice = new TimeSlice();
  const counting: Counting = { now, slice, goOn: () => slice.next() };
  const refused = new Tally<BulkRefusal>(SAMPLE);
  const sums = new Sums();
  for await (const page of selected(scope, checked, undefined, refused)) {
    const ledgers = await Promise.all(page.map(({ definition }) => store.runs.ledger(definition)));
    for (const [i, task] of page.entries()) {
      const schedule = store.calendars.schedules.get(task.definition);
      if (isFrozen(freezes, task, now)) sums.held += 1;
      for (const { reason, at, from, to } of ledgers[i] ?? []) {
        if (reason !== "frozen" || at < now - DAY) continue;
        const skipped = await countTimes(task, schedule, [[from, to]], MOST_OWED, slice, counting.goOn);
        sums.addFrozen(skipped, from, to, task);
      }
      const paused = task.state === "paused";
      if (paused && !wasPaused(task, { note, pausedBy })) continue;
      if (paused) sums.tasks += 1;
      const owed = await owedBy(task, schedule, counting);
      if (!owed) continue;
      if (!paused) sums.unpaused.add(owed.count);
      else sums.addOwed(task, owed, await keptOf(task, schedule, owed, counting));
    }
  }
  return { ...sums.plan, refused: refused.result };
}

/** Whether a task was paused with this note and by this name; undefined: with any, by any. */
export function wasPaused(
  { paused }: StoredTask,
  { note, pausedBy }: Pick<ResumeFilter, "note" | "pausedBy">,
): boolean {
  return (note === undefined || paused?.note === note) && (pausedBy === undefined || paused?.by === pausedBy);
}

function isFrozen(freezes: readonly Freeze[], { definition }: StoredTask, now: number): boolean {
  const its = freezes.filter((one) => covers(one, definition));
  return frozenAt(its, now) !== undefined;
}

/** Sum of counts. */
class Sum {
  tasks = 0;
  count = 0;
  exact = true;

  add({ count, exact }: Counted, tasks = 1): void {
    this.tasks += tasks;
    this.count += count;
    this.exact &&= exact;
  }

  get counted(): Counted {
    return { count: this.count, exact: this.exact };
  }

  get value(): OwedCount {
    return { tasks: this.tasks, ...this.counted };
  }
}

class Sums {
  tasks = 0;
  held = 0;
  readonly unpaused = new Sum();
  readonly #owed = new Sum();
  readonly #policies = { all: new Sum(), one: new Sum(), skip: new Sum() };
  readonly #kept = new Sum();
  readonly #frozen = new Sum();
  #lastFrozen: StoredTask | undefined;
  #range: { from?: number; to?: number } = {};
  #most: OwedTask[] = [];

  addOwed(
    task: StoredTask,
    { count, from, to }: { count: Counted; from: number; to: number },
    kept: Counted,
  ): void {
    const { catchUp } = task.definition;
    for (const sum of [this.#owed, this.#policies[catchUp]]) sum.add(count);
    this.#kept.add(kept);
    const listed = { ...nameOf(task), catchUp, owed: count, from, to };
    this.#most = [...this.#most, listed].sort((a, b) => b.owed.count - a.owed.count).slice(0, MOST_LISTED);
  }

  addFrozen(skipped: Counted, from: number, to: number, task: StoredTask): void {
    this.#frozen.add(skipped, this.#lastFrozen === task ? 0 : 1);
    this.#lastFrozen = task;
    const { from: first = from, to: last = to } = this.#range;
    this.#range = { from: Math.min(first, from), to: Math.max(last, to) };
  }

  get plan(): Omit<ResumePlan, "refused"> {
    const { all, one, skip } = this.#policies;
    return {
      tasks: this.tasks,
      owed: this.#owed.value,
      policies: { all: all.value, one: one.value, skip: skip.value },
      starts: {
        now: { count: 0, exact: true },
        latest: { count: this.#owed.tasks, exact: true },
        "catch-up": this.#kept.counted,
        all: this.#owed.counted,
      },
      most: this.#most,
      unpaused: this.unpaused.value,
      frozen: { ...this.#frozen.value, ...this.#range },
      held: this.held,
    };
  }
}
