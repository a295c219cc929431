import type { Backoff, Policies, RerunPolicy } from "./policies.js";
import { hashOf } from "./schedule/hash.js";
import { parseDuration } from "./schedule/text/duration.js";
import type { TaskSchedule } from "./task-schedule.js";

/** The wait after n consecutive failures (n from 1), in ms, before cap and jitter. */
export function backoffWait(kind: Backoff, period: number, n: number): number {
  if (kind === "fixed") return period;
  if (kind === "linear") return period * n;
  return period * 2 ** Math.min(n - 1, 52);
}

/** The consequences of a failed run, by the policies of its task. */
export interface AfterFailure {
  /** Start again this many ms after the end; undefined: no retry, wait for the next occurrence. */
  readonly retryIn: number | undefined;
  readonly pause: boolean;
}

/**
 * Decides after n consecutive failures (n from 1). The wait is capped (default 5 intervals) and then jittered, both as
 * TimescaleDB documents it; the caller checks whether the next occurrence comes first.
 *
 * @param interval of the schedule in ms, called only if it is the default cap; undefined if unknown: there is then no
 * cap
 * @param seed of the jitter: the same seed always gives the same jitter
 */
export function afterFailure(
  policies: Pick<Policies, "rerun" | "pauseAfterFailures">,
  failures: number,
  interval: () => number | undefined,
  seed: string,
): AfterFailure {
  const { rerun, pauseAfterFailures } = policies;
  if (pauseAfterFailures !== undefined && failures >= pauseAfterFailures)
    return { retryIn: undefined, pause: true };
  if (rerun === undefined) return { retryIn: undefined, pause: false };
  const most =
    rerun.max === undefined ? 5 * (interval() ?? Number.POSITIVE_INFINITY) : parseDuration(rerun.max);
  const wait = Math.min(backoffWait(rerun.backoff, parseDuration(rerun.delay), failures), most);
  const spread = ((hashOf(seed) / 0x1_0000_0000) * 2 - 1) * (rerun.jitter / 100);
  return { retryIn: Math.max(1, Math.round(wait * (1 + spread))), pause: false };
}

/** Occurrences that are tried, and their start. */
const TRIED = 64;
const SAMPLE = Date.UTC(2026, 0, 1);

/** Whether the next occurrence always takes the place of a retry: even the shortest wait is as long as the gaps between occurrences. */
export function neverReruns({ delay, max, jitter }: RerunPolicy, schedule: TaskSchedule): boolean {
  if (schedule.delay !== undefined) return false;
  const wait = Math.min(
    parseDuration(delay),
    max === undefined ? Number.POSITIVE_INFINITY : parseDuration(max),
  );
  const shortest = wait * (1 - jitter / 100);
  let nominal = schedule.next(SAMPLE);
  for (let i = 0; i < TRIED && nominal !== undefined; i++) {
    const following = schedule.next(nominal);
    if (following === undefined || schedule.due(following) - nominal > shortest) return false;
    nominal = following;
  }
  return nominal !== undefined;
}
