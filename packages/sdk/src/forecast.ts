import { counted, decide, readyAt } from "@carillon/core";
import { dueTask, type Store, type StoredTask } from "@carillon/store";

/** What is enqueued for a nominal time, and when: a slot's due time, a retry's, or now for what is owed. UTC ms. */
interface Foreseen {
  readonly nominal: number;
  readonly due: number;
}

/**
 * What of a task is enqueued from `now` to `until`, in order: what claims will decide if nothing changes and runs take no time.
 * What is owed goes now, as far as the task's catch-up policy keeps it. What waits for a run's end has no time to tell.
 */
export function* foresee(store: Store, task: StoredTask, now: number, until: number): Generator<Foreseen> {
  if (task.state !== "scheduled") return;
  const { schedule, ...due } = dueTask({ task, running: undefined }, store.calendars.schedules);
  let { slot } = due;
  let pending = due.pending.filter(({ at }) => at !== undefined);
  let fired = due.fired + counted(due.pending.filter(({ at }) => at === undefined));
  for (;;) {
    const at = Math.max(now, Math.min(slot?.due ?? Number.POSITIVE_INFINITY, ...pending.map(readyAt)));
    if (at > until) return;
    const { enqueue, next, ...rest } = decide({ ...due, schedule, slot, pending, fired }, at);
    pending = [...rest.pending];
    if (enqueue) {
      fired += counted([enqueue]);
      yield { nominal: enqueue.nominal, due: at };
    }
    if (next !== "kept") slot = next && "afterFinish" in next ? schedule.slotAfter(at) : next;
  }
}
