import type { Json, Occurrence } from "@carillon/core";
import type { Ending } from "./worker/ending.js";

/** What every handler knows, whether it does a run or one item of it. */
export interface AttemptContext {
  readonly occurrence: Occurrence;
  /**
   * The same for every attempt and every retry of this occurrence: give it to whatever must not happen twice
   * (a payment, a mail). An item's ends in its index.
   */
  readonly idempotencyKey: string;
  /**
   * Grows with each attempt's start, per task. Hand it to your storage to shut out an attempt that was thought dead:
   * `UPDATE … SET fence = $1 WHERE fence <= $1`. Items have the fence of the attempt that generated them.
   */
  readonly fence: number;
  /** From 1; an attempt whose worker died counts. */
  readonly attempt: number;
  /**
   * Aborted when the attempt must end. The reason says why: `TimeLimitError`, `CancelledError`, `LockLostError` (another
   * worker will take the job over) or `StoppingError` (this worker stops).
   */
  readonly signal: AbortSignal;
  /** Milliseconds left of the time limit, 0 when it is over; `Infinity` without one. */
  timeLeft(): number;
  /** Into the job's log (seen in Bull Board), the run's output and the worker's logger. */
  log(message: string, details?: object): void;
}

/** What a handler knows and can do, besides its payload. */
export interface Context extends AttemptContext {
  /** What `saveCheckpoint` saved last, by the run before or an earlier attempt of this one; undefined: nothing yet. */
  readonly checkpoint: Json | undefined;
  /**
   * Keeps where this run got to, for the attempts and runs that follow. Resolves when it is stored.
   * @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE` (64 KiB of JSON), `CONFLICT` when this attempt's word no longer counts
   */
  saveCheckpoint(value: Json): Promise<void>;
  /**
   * Asks for one more run at this time, recorded with this run's end; the last call counts. A time that is past means at once. Of a
   * task one such run waits: one that another run asked for before, for another time, is given up (`superseded` in the ledger).
   * @param time epoch ms, a Date, or ISO 8601 with an offset
   * @throws `INVALID_OPTION`
   */
  runNextAt(time: number | Date | string): void;
  /** `return quota()`: enough for this run, the next one goes on from the checkpoint. Counts as success. */
  quota(result?: Json): Ending;
  /** `return nothingToDo()`: this run only looked; `lastRun` stays what it was. */
  nothingToDo(result?: Json): Ending;
}

/** What the code that does one item knows. */
export interface ItemContext extends AttemptContext {
  /** The item's place in what was generated, from 0. */
  readonly index: number;
}
