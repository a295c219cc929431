/** Longest wait after Redis failed, in ms. */
export const LONGEST_BACKOFF = 2_000;

/** Wait in ms after this number of consecutive failures. */
export function backoff(failures: number): number {
  return Math.min(50 * 2 ** Math.min(failures, 10), LONGEST_BACKOFF);
}
