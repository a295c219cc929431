import { setTimeout as pause } from "node:timers/promises";

/** Longest wait for Redis in a scrape, in ms; metrics that need it are then omitted. */
const WAIT_AT_MOST = 1_000;

/** The result, if it arrives within a second; undefined if it does not, or is an error. Never throws. */
export async function withinASecond<T>(ask: () => Promise<T>): Promise<T | undefined> {
  const late = pause(WAIT_AT_MOST, undefined, { ref: false });
  return Promise.race([ask(), late]).catch(() => undefined);
}
