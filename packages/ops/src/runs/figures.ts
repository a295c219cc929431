import type { Ended } from "@carillon/store";

/** From this delay of the enqueuing, or wait for a worker, in ms, a run is late: as in the status. */
const LATE = { lateMs: 1_000, waitMs: 60_000 };

export function isLate({ lateMs = 0, waitMs = 0 }: Partial<Pick<Ended, "lateMs" | "waitMs">>): boolean {
  return lateMs >= LATE.lateMs || waitMs >= LATE.waitMs;
}

/** By the nearest rank; undefined: there are none. */
export function percentile(sorted: ArrayLike<number>, share: number): number | undefined {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
