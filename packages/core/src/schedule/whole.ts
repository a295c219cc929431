import { CarillonError, quote } from "../errors.js";
import { parseCalendarStep } from "./calendar-interval.js";
import { parseDuration } from "./duration.js";
import { jitterOf } from "./jitter.js";
import type { CompiledSchedule, Schedule } from "./types.js";

/**
 * The delay from the finish of a run to the next, in ms, of a schedule with `anchor: "finish"`; else undefined.
 * @throws `INVALID_SCHEDULE`, `INVALID_DURATION` for what a delay cannot be joined with
 */
export function delayOf(schedule: Schedule): number | undefined {
  if (!("anchor" in schedule) || schedule.anchor !== "finish") return undefined;
  const { every, origin, timezone, jitter } = schedule;
  if (origin !== undefined) throw unfit("origin", "Leave it out; start is the first time allowed.");
  if (timezone !== undefined) throw unfit("timezone", "Leave it out; an exclusion may have its own.");
  if (jitter !== undefined) throw unfit("jitter", "Leave it out, or leave anchor out.");
  if (parseCalendarStep(every, "schedule.every") !== undefined) {
    throw new CarillonError("INVALID_DURATION", `${quote(every)} has no fixed length.`, {
      field: "schedule.every",
      remedy: "With anchor: finish, give a duration such as 10m, 24h or 7d.",
    });
  }
  return parseDuration(every, "schedule.every");
}

function unfit(field: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", `A delay after the finish of a run has no ${field}.`, {
    field: `schedule.${field}`,
    remedy,
  });
}

/**
 * When the occurrence of a nominal time is acted on, UTC ms: later by its jitter, and before the following occurrence.
 * @param seed the task's id
 * @param compiled the same schedule, to know how long the gap is
 */
export function dueOf(
  schedule: Schedule,
  seed: string,
  compiled: Pick<CompiledSchedule, "next">,
  nominal: number,
): number {
  if (schedule.jitter === undefined) return nominal;
  return nominal + jitterOf(schedule.jitter, seed, nominal, compiled.next(nominal));
}

/** How many occurrences of the schedule are enqueued at most; undefined: no limit. */
export function maxRunsOf(schedule: Schedule): number | undefined {
  return schedule.maxRuns;
}
