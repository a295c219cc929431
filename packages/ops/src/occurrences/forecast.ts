import type { Duration } from "@carillon/core";
import { durationOption, invalid, MAX_DURATION, scheduleSteps } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import type { Call } from "../operation.js";
import { dueTasks, type Upcoming, widening } from "./due-tasks.js";
import { TimeSlice } from "./time-slice.js";
import { foresee } from "./walk.js";

/**
 * Each occurrence within a duration from now, earliest first, by the current schedules. Includes retries and requested runs that are due by then,
 * and owed occurrences that the catch-up policy keeps, as due now. Occurrences that a freeze skips, or holds beyond that time, are marked. A
 * fixed delay after finish is computed as if runs took no time. With more than `most`: the earliest of all tasks.
 *
 * @throws `INVALID_OPTION` if it takes more steps of schedules than a time slice has
 */
export async function forecast(
  { scope, store, owner }: Call,
  length: string | number,
  queue: string | undefined,
  most = 1_000,
): Promise<Upcoming[]> {
  const limit = wholeNumber(most, "limit", 1, 100_000);
  const within = durationOption(length as Duration, "within", 1, MAX_DURATION);
  const queues = await scope.queuesOf(queue);
  const now = queues[0] === undefined ? 0 : await store.tasks.time(queues[0]);
  const until = now + within;
  const [freezes] = await Promise.all([store.freezes.list(), store.calendars.refresh()]);
  const slice = new TimeSlice();
  return widening(limit, async (most) => {
    const { tasks, horizon } = await dueTasks(store, queues, until, most, owner);
    slice.begin();
    let found: Upcoming[] = [];
    let end = Number.POSITIVE_INFINITY;
    for await (const { name, task } of slice.over(tasks, 1)) {
      const steps = scheduleSteps(task.definition.schedule);
      try {
        for await (const one of slice.over(foresee(store, task, now, until, freezes), steps)) {
          if (one === undefined) continue;
          if (one.due >= end) break;
          found.push({ task: name, ...one });
          if (found.length < 2 * limit) continue;
          found = found.sort(inOrder).slice(0, limit);
          end = found.at(-1)?.due ?? end;
        }
      } catch {
        // Skips tasks with corrupt or foreign schedules.
      }
    }
    if (slice.spent)
      throw invalid(
        "within",
        "the forecast takes too many steps.",
        "Ask for a shorter time, a smaller limit, or one queue.",
      );
    return { found: found.sort(inOrder).slice(0, limit), horizon: Math.max(horizon, now) };
  });
}

function inOrder(a: Upcoming, b: Upcoming): number {
  return a.due - b.due || (a.task.id < b.task.id ? -1 : a.task.id > b.task.id ? 1 : 0);
}
