import type { Observation } from "@carillon/store";

/**
 * Likely cause of a difference. `time-zone`: they read the expression in another zone; `dst`: only around a clock change; `dialect`:
 * cron-parser reads the expression differently; `held-up`: their worker was down, or their queue paused; `stopped`: they have
 * fired nothing since; `skipped`: the shadow would have skipped it, for `reason`.
 */
export const CAUSES = [
  ...(["time-zone", "dst", "dialect", "held-up", "stopped", "skipped", "unknown"] as const),
] as const;
type Cause = (typeof CAUSES)[number];

/** A time that only one side has, or that both have at different times. UTC ms. */
export interface Difference {
  readonly ours?: number | undefined;
  readonly theirs?: number | undefined;
  readonly cause: Cause;
  /** Reason for which the shadow would have skipped it. */
  readonly reason?: string | undefined;
}

/** A decided time of a shadow: `shadow` if it would have been enqueued, or the reason of the skip. */
export interface Decided {
  readonly time: number;
  readonly reason: string;
}

export interface About {
  /** Largest difference of equal times, in ms. */
  readonly tolerance: number;
  /** Offset of the schedule's zone at a time, in ms. */
  readonly offsetAt: (time: number) => number;
  /** Whether cron-parser and Carillon read the expression differently at a time. */
  readonly differsByDialect: (time: number) => boolean;
}

const [QUARTER, HOUR] = [15 * 60_000, 3_600_000];
/** Largest difference of time zones. */
const LARGEST_SHIFT = 14 * HOUR;

/** Compares what a shadow would have enqueued with what really fired. Both are in order. */
export function compareTimes(
  decided: readonly Decided[],
  theirs: readonly Observation[],
  about: About,
): { same: number; differences: Difference[] } {
  const ours = decided.filter(({ reason }) => reason === "shadow").map(({ time }) => time);
  const half = Math.floor(leastGap(ours) / 2);
  const tolerance = Math.min(about.tolerance, half);
  const exact = pair(
    ours,
    theirs.map(({ nominal }) => nominal),
    tolerance,
  );
  const near = pair(exact.ours, exact.theirs, Math.min(LARGEST_SHIFT, half));
  const same = exact.pairs.length;

  const shifted = near.pairs.map(([time, their]): Difference => {
    const shift = their - time;
    const dst = Math.abs(shift) === HOUR && same > 0;
    const zone = shift === about.offsetAt(time) || shift % QUARTER === 0;
    return {
      ours: time,
      theirs: their,
      cause: dst ? "dst" : zone ? "time-zone" : shift > 0 ? "held-up" : "unknown",
    };
  });
  const last = theirs.at(-1)?.nominal ?? 0;
  const onlyOurs = near.ours.map((time): Difference => {
    if (about.differsByDialect(time)) return { ours: time, cause: "dialect" };
    const late = theirs.some(({ nominal, at }) => nominal < time && at >= time - tolerance);
    return { ours: time, cause: late ? "held-up" : time > last ? "stopped" : "unknown" };
  });
  const onlyTheirs = near.theirs.map((time): Difference => {
    const skip = decided.find((one) => one.reason !== "shadow" && Math.abs(one.time - time) <= tolerance);
    if (skip) return { theirs: time, cause: "skipped", reason: skip.reason };
    return { theirs: time, cause: about.differsByDialect(time) ? "dialect" : "unknown" };
  });
  const first = ({ ours = Infinity, theirs = Infinity }: Difference) => Math.min(ours, theirs);
  return { same, differences: [...shifted, ...onlyOurs, ...onlyTheirs].sort((a, b) => first(a) - first(b)) };
}

function leastGap(times: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const [i, time] of times.entries())
    if (i > 0) least = Math.min(least, time - (times[i - 1] as number));
  return least;
}

/** Pairs times that differ by no more than `most`; the rest stays on its side. */
function pair(ours: readonly number[], theirs: readonly number[], most: number) {
  const pairs: [ours: number, theirs: number][] = [];
  const left: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  let [i, j] = [0, 0];
  while (i < ours.length || j < theirs.length) {
    const [a, b] = [ours[i] ?? Number.POSITIVE_INFINITY, theirs[j] ?? Number.POSITIVE_INFINITY];
    if (Math.abs(a - b) <= most) {
      pairs.push([a, b]);
      i++;
      j++;
    } else if (a < b) {
      left.ours.push(a);
      i++;
    } else {
      left.theirs.push(b);
      j++;
    }
  }
  return { pairs, ...left };
}
