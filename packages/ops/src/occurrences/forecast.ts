import type { Duration } from "@carillon/core";
import { durationOption, invalid, MAX_DURATION, scheduleSteps } from "@carillon/core/internal";
import { wholeNumber } from "@carillon/sdk/internal";
import { z } from "zod";
import { operation } from "../operation.js";
import { duration } from "../shapes.js";
import { dueTasks, pick, upcoming as shape, type Upcoming, widening } from "./due-tasks.js";
import { TimeSlice } from "./time-slice.js";
import { foresee } from "./walk.js";

/**
 * By the current schedules. Includes retries and requested runs that are due by then, and owed occurrences that the catch-up policy keeps, as due
 * now. Occurrences that a freeze skips, or holds beyond that time, are marked. A fixed delay after finish is computed as if runs took no
 * time. With more than `limit`: the earliest of all tasks.
 */
export const forecast = operation({
  http: "GET /forecast",
  role: "viewer",
  reach: "owner",
  cost: "computes",
  example: { within: "1h" },
  summary:
    "Lists each occurrence within a duration from now, earliest first; 1,000 unless `limit` (at most 100,000) says otherwise. Refused if it takes more than 250,000 steps of schedules.",
  input: z.strictObject({ within: duration, ...pick }),
  output: z.object({ upcoming: z.array(shape) }),
  async run({ scope, store, owner }, { within: length, queue, limit: most = 1_000 }) {
    const limit = wholeNumber(most, "limit", 1, 100_000);
    const within = durationOption(length as Duration, "within", 1, MAX_DURATION);
    const queues = await scope.queuesOf(queue);
    const now = queues[0] === undefined ? 0 : await store.tasks.time(queues[0]);
    const until = now + within;
    const [freezes] = await Promise.all([store.freezes.list(), store.calendars.refresh()]);
    const slice = new TimeSlice();
    const upcoming = await widening(limit, async (most) => {
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
    return { upcoming };
  },
});

function inOrder(a: Upcoming, b: Upcoming): number {
  return a.due - b.due || (a.task.id < b.task.id ? -1 : a.task.id > b.task.id ? 1 : 0);
}
