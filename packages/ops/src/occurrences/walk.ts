import {
  counted,
  decide,
  type Freeze,
  type Frozen,
  fixedInterval,
  readyAt,
  scheduleSteps,
  TaskSchedule,
  type TimeRange,
} from "@carillon/core/internal";
import { dueTask, type Store, type StoredTask } from "@carillon/store";
import { z } from "zod";
import { count } from "../shapes.js";
import type { TimeSlice } from "./time-slice.js";

/** A number of occurrences; not `exact`: there are at least that many. */
export const countedShape = z.object({ count, exact: z.boolean() }).meta({ id: "Counted" });
export type Counted = z.output<typeof countedShape>;

/** The nominal times of a schedule from `first` to `to`. */
export function* timesFrom(
  schedule: Pick<TaskSchedule, "next">,
  first: number | undefined,
  to = Number.POSITIVE_INFINITY,
): Generator<number> {
  for (let at = first; at !== undefined && at <= to; at = at < to ? schedule.next(at) : undefined) yield at;
}

/** The nominal times of a schedule in ranges, both ends included. */
export function* timesIn(
  schedule: Pick<TaskSchedule, "next">,
  ranges: readonly TimeRange[],
): Generator<number> {
  for (const [from, to] of ranges) yield* timesFrom(schedule, schedule.next(from - 1), to);
}

/** Counts nominal times, without walking if their distance is fixed. @param most stops above that many */
export async function countTimes(
  { definition }: Pick<StoredTask, "definition">,
  schedule: TaskSchedule,
  ranges: readonly TimeRange[],
  most: number,
  slice: TimeSlice,
): Promise<Counted> {
  const interval = fixedInterval(definition.schedule);
  let count = 0;
  if (interval !== undefined) {
    for (const [from, to] of ranges) {
      const [first, last] = [schedule.next(from - 1), schedule.latest(to)];
      if (first !== undefined && last !== undefined && last >= first) count += (last - first) / interval + 1;
    }
    return { count, exact: true };
  }
  for await (const _ of slice.over(timesIn(schedule, ranges), scheduleSteps(definition.schedule)))
    if (++count > most) return { count, exact: false };
  return { count, exact: !slice.spent };
}

/** Times of a backlog that are remembered; well above the highest `most`. */
const MOST_WALKED = 10_000;

/** A nominal time and when it is enqueued: the due time of its slot or retry, or now if it is overdue. UTC ms. */
interface Foreseen {
  readonly nominal: number;
  readonly due: number;
  /** The freeze that skips it then, or holds it beyond the end of the forecast. */
  readonly frozen?: Frozen;
}

/** Without quotas, which depend on the jobs that will wait then. */
const UNBOUND = { revision: "", quotas: new Map(), full: new Set<string>() };

/**
 * The occurrences of a task enqueued from `now` to `until`, in order: the decisions of claims if nothing changes and
 * runs take no time. Overdue occurrences are enqueued now if the catch-up policy keeps them. Occurrences that wait for
 * the end of a run are left out. Yields undefined for a step that enqueues nothing, so that the caller can stop there.
 */
export function* foresee(
  store: Store,
  task: StoredTask,
  now: number,
  until: number,
  freezes: readonly Freeze[] = [],
): Generator<Foreseen | undefined> {
  if (task.state !== "scheduled") return;
  const entry = { task, running: undefined, frozen: { ...UNBOUND, list: freezes } };
  const { schedule: plain, ...due } = dueTask(entry, store.calendars.schedules);
  const most = due.catchUp === "all" ? due.policies.catchUpLimits?.max : undefined;
  const schedule = most === undefined ? plain : new Walked(task, plain);
  let toWalk = most ?? 0;
  let { slot } = due;
  let pending = due.pending.filter(({ at }) => at !== undefined);
  let fired = due.fired + counted(due.pending.filter(({ at }) => at === undefined));
  // A freeze holds single times and pending occurrences until then.
  let thaw = now;
  for (;;) {
    const slotAt =
      slot === undefined ? Number.POSITIVE_INFINITY : due.once ? Math.max(thaw, slot.due) : slot.due;
    const at = Math.max(now, Math.min(slotAt, ...pending.map((one) => Math.max(thaw, readyAt(one)))));
    if (at > until) return;
    if (toWalk > 0 && slot !== undefined && slot.due <= at) {
      // Searches backwards as the decision does, once, and in steps.
      let oldest = schedule.latestDue(at);
      for (; toWalk > 1 && oldest !== undefined && oldest > slot.nominal; toWalk--) {
        oldest = schedule.latest(oldest - 1);
        yield undefined;
      }
      toWalk = 0;
    }
    const { enqueue, next, frozen, ...rest } = decide({ ...due, schedule, slot, pending, fired }, at);
    pending = [...rest.pending];
    if (frozen && rest.skipped.length > 0) {
      yield { nominal: rest.cursor ?? at, due: at, frozen };
    } else if (frozen && (frozen.until ?? Number.POSITIVE_INFINITY) <= until) {
      thaw = frozen.until as number;
    } else if (frozen) {
      const held = pending.filter((one) => readyAt(one) <= at);
      for (const { nominal } of held) yield { nominal, due: at, frozen };
      pending = pending.filter((one) => !held.includes(one));
      if (slot !== undefined && next === "kept" && slot.due <= at) {
        yield { nominal: slot.nominal, due: at, frozen };
        slot = undefined;
      }
    }
    if (enqueue) fired += counted([enqueue]);
    yield enqueue && { nominal: enqueue.nominal, due: at };
    if (next !== "kept") slot = next && "afterFinish" in next ? schedule.slotAfter(at) : next;
  }
}

/**
 * Caches the backward walk: each decision about a backlog walks back through the newest `max` times, which are nearly
 * the same each time.
 */
class Walked extends TaskSchedule {
  readonly #latest = new Map<number, number | undefined>();

  constructor({ definition }: StoredTask, plain: TaskSchedule) {
    super(definition, plain);
  }

  override latest(at: number): number | undefined {
    if (this.#latest.has(at)) return this.#latest.get(at);
    if (this.#latest.size >= MOST_WALKED) this.#latest.clear();
    const latest = super.latest(at);
    this.#latest.set(at, latest);
    return latest;
  }
}
