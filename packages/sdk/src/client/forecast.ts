import { counted, decide, readyAt, TaskSchedule } from "@carillon/core/internal";
import { dueTask, type Store, type StoredTask } from "@carillon/store";

/** Times of a backlog that are remembered; well above the highest `most`. */
const MOST_WALKED = 10_000;

/** A nominal time and when it is enqueued: the due time of its slot or retry, or now if it is overdue. UTC ms. */
interface Foreseen {
  readonly nominal: number;
  readonly due: number;
}

/**
 * The occurrences of a task enqueued from `now` to `until`, in order: the decisions of claims if nothing changes and runs take no time.
 * Overdue occurrences are enqueued now if the catch-up policy keeps them. Occurrences that wait for the end of a run are left out.
 * Undefined: a step that enqueues nothing, for the caller to stop at.
 */
export function* foresee(
  store: Store,
  task: StoredTask,
  now: number,
  until: number,
): Generator<Foreseen | undefined> {
  if (task.state !== "scheduled") return;
  const { schedule: plain, ...due } = dueTask({ task, running: undefined }, store.calendars.schedules);
  const most = due.catchUp === "all" ? due.policies.catchUpLimits?.max : undefined;
  const schedule = most === undefined ? plain : new Walked(task, plain);
  let toWalk = most ?? 0;
  let { slot } = due;
  let pending = due.pending.filter(({ at }) => at !== undefined);
  let fired = due.fired + counted(due.pending.filter(({ at }) => at === undefined));
  for (;;) {
    const at = Math.max(now, Math.min(slot?.due ?? Number.POSITIVE_INFINITY, ...pending.map(readyAt)));
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
    const { enqueue, next, ...rest } = decide({ ...due, schedule, slot, pending, fired }, at);
    pending = [...rest.pending];
    if (enqueue) fired += counted([enqueue]);
    yield enqueue && { nominal: enqueue.nominal, due: at };
    if (next !== "kept") slot = next && "afterFinish" in next ? schedule.slotAfter(at) : next;
  }
}

/** Cache: each decision about a backlog walks back through the newest `max` times, which are nearly the same each time. */
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
