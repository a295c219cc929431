import { CarillonError, quote } from "../../errors.js";
import { type Bounds, bounded } from "../bounds.js";
import { MAX_TIME } from "../civil.js";
import { parseDuration } from "../text/duration.js";
import type { CompiledSchedule, Schedule } from "../types.js";
import { parseCalendarStep } from "./calendar-interval.js";
import { EveryInterval } from "./every-interval.js";

/**
 * A fixed delay after the finish of a run: `next(finish)` is `finish + delay`, not before the start, and later by whole
 * delays while that is excluded. It has no times of its own, so `latest` is always undefined.
 */
export class DelayAfterFinish implements CompiledSchedule {
  readonly #leftOf: (times: EveryInterval) => CompiledSchedule;

  /** @param leftOf removes excluded times from those that follow one finish */
  constructor(
    private readonly delay: number,
    private readonly bounds: Bounds,
    leftOf = (times: EveryInterval): CompiledSchedule => bounded(times, bounds),
  ) {
    this.#leftOf = leftOf;
  }

  next(after: number): number | undefined {
    const { start } = this.bounds;
    const first = after < start ? start : Math.max(after, -MAX_TIME) + this.delay;
    if (!(first <= this.bounds.end)) return undefined;
    return this.#leftOf(new EveryInterval(this.delay, first)).next(first - 1);
  }

  latest(): undefined {
    return undefined;
  }
}

/**
 * The delay from the finish of a run to the next one, in ms, of a schedule with `anchor: "finish"`; else undefined.
 * @throws `INVALID_SCHEDULE`, `INVALID_DURATION` for fields that do not fit a delay
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
