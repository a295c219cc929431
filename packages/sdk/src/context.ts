import type { Occurrence } from "@carillon/core";

/** What a handler knows besides its payload. */
export interface Context {
  readonly occurrence: Occurrence;
  /**
   * The same for every attempt and every retry of this occurrence: give it to whatever must not happen twice
   * (a payment, a mail).
   */
  readonly idempotencyKey: string;
  /**
   * Grows with each attempt's start, per task. Hand it to your storage to shut out an attempt that was thought dead:
   * `UPDATE … SET fence = $1 WHERE fence < $1`.
   */
  readonly fence: number;
  /** From 1. */
  readonly attempt: number;
  /** Aborted when the job's lock is lost (another worker will take it over) or the worker must stop at once. */
  readonly signal: AbortSignal;
  /** Into the job's log (seen in Bull Board) and the worker's logger. */
  log(message: string, details?: object): void;
}
