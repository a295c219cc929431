/** Longest wait after Redis failed, in ms. */
export const LONGEST_BACKOFF = 2_000;

/** How long to wait after so many failures in a row, in ms. */
export function backoff(failures: number): number {
  return Math.min(50 * 2 ** Math.min(failures, 10), LONGEST_BACKOFF);
}
