import type { DueTask } from "./decision.js";
import { type Freeze, frozenAt } from "./freeze.js";

/** Freezes that are followed, one after another, to a time that none of them covers. */
const MOST_FREEZES = 100;

/**
 * Start of the next occurrence of a task, if nothing changes: `decide` skips times of a schedule during a freeze, and holds a single time
 * and occurrences that wait until its end. Computed without a step for each skipped time. UTC ms; undefined: a freeze without an end comes
 * first, or no time is left.
 *
 * @param waiting times of occurrences that wait for a time of their own
 */
export function nextThawed(
  { slot, once, schedule, freezes = [] }: Pick<DueTask, "slot" | "once" | "schedule" | "freezes">,
  waiting: readonly number[],
  now: number,
): number | undefined {
  const held = [...waiting, ...(once && slot ? [slot.due] : [])];
  const times = held.map((at) => thawed(freezes, at, now, (until) => until));
  if (!once && slot) {
    let { nominal } = slot;
    const skip = (until: number, at: number) => {
      const { delay } = schedule;
      const last =
        delay === undefined
          ? (schedule.latestDue(until - 1) ?? nominal)
          : at + (Math.ceil((until - at) / delay) - 1) * delay;
      const next = schedule.slotAfter(Math.max(nominal, last));
      nominal = next?.nominal ?? nominal;
      return next?.due;
    };
    times.push(thawed(freezes, slot.due, now, skip));
  }
  const known = times.filter((at) => at !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** The first time that no freeze covers, now at the earliest. @param after the next candidate, if a freeze covers `at` until then */
function thawed(
  freezes: readonly Freeze[],
  first: number,
  now: number,
  after: (until: number, at: number) => number | undefined,
): number | undefined {
  let at: number | undefined = first;
  for (let n = 0; n < MOST_FREEZES && at !== undefined; n++) {
    const frozen = frozenAt(freezes, Math.max(at, now));
    if (!frozen) return at;
    at = frozen.until === undefined ? undefined : after(frozen.until, Math.max(at, now));
  }
  return undefined;
}
