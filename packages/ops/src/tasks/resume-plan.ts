import { covers, type Freeze, frozenAt, type TimeRange } from "@carillon/core/internal";
import type { Skip, StoredTask } from "@carillon/store";
import { z } from "zod";
import { type Backfills, backfillsOf, Doings } from "../backfills/doings.js";
import { merged, type Undone, undone } from "../backfills/times.js";
import { type BulkRefusal, nameOf, refused as refusedShape, selected, Tally } from "../bulk/bulk.js";
import { checkedFilter, filter } from "../bulk/filter.js";
import { type Counting, keptOf, MOST_OWED, owedBy } from "../bulk/owed.js";
import { freezeScope } from "../freezes/freeze.js";
import { TimeSlice } from "../occurrences/time-slice.js";
import { type Counted, countedShape as counted } from "../occurrences/walk.js";
import { operation } from "../operation.js";
import { count, given, taskName, time } from "../shapes.js";

/** Further conditions on how the tasks were paused. */
export const pausedFilter = {
  ...filter,
  note: given.optional().describe("Only tasks that were paused with exactly this note."),
  pausedBy: given.optional().describe("Only tasks that were paused by exactly this name."),
};

const owed = counted.extend({ tasks: count }).meta({ id: "OwedCount" });
type OwedCount = z.output<typeof owed>;
const owedTask = taskName.extend({
  catchUp: z.enum(["skip", "one", "all"]),
  owed: counted,
  from: time.describe("First nominal time that it owes."),
  to: time.describe("The last one."),
});
type OwedTask = z.output<typeof owedTask>;

/** Runs that a resume of many tasks would start. */
const plan = z
  .object({
    tasks: count.describe("Number of paused tasks that match, whether they owe anything or not."),
    owed: owed.describe("Occurrences that fell due during the pauses."),
    policies: z.object({ all: owed, one: owed, skip: owed }).describe("The same by catch-up policy."),
    starts: z
      .object({ skip: counted, latest: counted, "catch-up": counted, all: counted })
      .describe("Occurrences that each value of `missed` starts at once, or with `perMinute` at that pace."),
    most: z.array(owedTask).readonly().describe("The ten tasks that owe most."),
    unpaused: owed.describe(
      "Tasks that are overdue and not paused: their catch-up policies decide, unless you pause them first.",
    ),
    frozen: owed
      .extend({
        from: time.optional(),
        to: time.optional(),
        scopes: z.array(freezeScope).readonly().describe("The first ten scopes of these freezes."),
      })
      .describe(
        "Occurrences that freezes skipped in the last day, and that were not run since: not owed. A backfill with `only: frozen` runs them.",
      ),
    held: count.describe("Tasks that a freeze holds now; resumed ones are held until it ends."),
    refused: refusedShape,
  })
  .meta({ id: "ResumePlan" });
type ResumePlan = z.output<typeof plan>;

type FreezeScope = z.output<typeof freezeScope>;

const DAY = 86_400_000;
const [MOST_LISTED, SAMPLE] = [10, 10];

/** Counts at most 250,000 times of schedules; beyond, counts are lower bounds (`exact: false`). */
export const planResume = operation({
  http: "POST /tasks/resume-plan",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  logs: false,
  once: "reads",
  example: { tag: "paused" },
  summary:
    "Counts the occurrences that the paused tasks that match owe, and how many each choice of a resume would start. Without conditions, of all.",
  input: z.strictObject(pausedFilter),
  output: plan,
  async run({ scope, store }, input) {
    const { note, pausedBy, ...checked } = checkedFilter(scope, input, ["note", "pausedBy"], "any");
    const [now, freezes, ended] = await Promise.all([
      store.freezes.time(),
      store.freezes.list(),
      store.freezes.ended(),
      store.calendars.refresh(),
    ]);
    const slice = new TimeSlice();
    const counting: Counting = { now, slice };
    const refused = new Tally<BulkRefusal>(SAMPLE);
    const sums = new Sums();
    let backfills: Backfills | undefined;
    for await (const page of selected(scope, checked, undefined, refused)) {
      const skips = await Promise.all(page.map(({ definition }) => store.runs.ledger(definition)));
      for (const [i, task] of page.entries()) {
        const schedule = store.calendars.schedules.get(task.definition);
        if (isFrozen(freezes, task, now)) sums.held += 1;
        const frozen = (skips[i] ?? []).filter(({ reason, at }) => reason === "frozen" && at >= now - DAY);
        if (frozen.length > 0) {
          const asked = merged(frozen.map(({ from, to }) => [from, to]));
          backfills ??= await backfillsOf(store, await scope.queuesOf(checked.queue));
          const doings = await Doings.of(store, task, backfills);
          const skipped = await undone(task, schedule, asked, doings, MOST_OWED, slice);
          const by = [...freezes, ...ended].filter((one) => frozen.some((skip) => isBy(one, skip, task)));
          if (skipped.count > 0) sums.addFrozen(skipped, by);
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
  },
});

/** Whether a task was paused with this note and by this name; undefined: with any, by any. */
export function wasPaused(
  { paused }: Pick<StoredTask, "paused">,
  { note, pausedBy }: { note?: string | undefined; pausedBy?: string | undefined },
): boolean {
  return (note === undefined || paused?.note === note) && (pausedBy === undefined || paused?.by === pausedBy);
}

function isFrozen(freezes: readonly Freeze[], { definition }: StoredTask, now: number): boolean {
  const its = freezes.filter((one) => covers(one, definition));
  return frozenAt(its, now) !== undefined;
}

/** Whether a freeze skipped a task's occurrences. */
function isBy(
  freeze: Freeze & { readonly ended?: number },
  { at, to }: Skip,
  { definition }: StoredTask,
): boolean {
  const { ended = Number.POSITIVE_INFINITY } = freeze;
  return covers(freeze, definition) && [at, to].some((time) => time <= ended && frozenAt([freeze], time));
}

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
  readonly #scopes = new Map<string, FreezeScope>();
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

  /** @param by the freezes that skipped them */
  addFrozen({ count, exact, ranges }: Undone, by: readonly Freeze[]): void {
    this.#frozen.add({ count, exact });
    const [[from], [, to]] = [ranges[0] as TimeRange, ranges.at(-1) as TimeRange];
    const { from: first = from, to: last = to } = this.#range;
    this.#range = { from: Math.min(first, from), to: Math.max(last, to) };
    for (const { owner, tag, queue, tasks, all } of by) {
      const scope = { owner, tag, queue, tasks, all };
      if (this.#scopes.size < MOST_LISTED) this.#scopes.set(JSON.stringify(scope), scope);
    }
  }

  get plan(): Omit<ResumePlan, "refused"> {
    const { all, one, skip } = this.#policies;
    return {
      tasks: this.tasks,
      owed: this.#owed.value,
      policies: { all: all.value, one: one.value, skip: skip.value },
      starts: {
        skip: { count: 0, exact: true },
        latest: { count: this.#owed.tasks, exact: true },
        "catch-up": this.#kept.counted,
        all: this.#owed.counted,
      },
      most: this.#most,
      unpaused: this.unpaused.value,
      frozen: { ...this.#frozen.value, ...this.#range, scopes: [...this.#scopes.values()] },
      held: this.held,
    };
  }
}
