import type { Json, Occurrence } from "@carillon/core";
import type { Ending } from "./worker/ending.js";

/** Context common to the handlers of runs and of items. */
export interface AttemptContext {
  /** Name of the task type. */
  readonly type: string;
  readonly occurrence: Occurrence;
  /**
   * The same for every attempt and every retry of this occurrence: pass it to operations that must not happen twice
   * (a payment, a mail). An item's ends in its index.
   */
  readonly idempotencyKey: string;
  /**
   * Grows with each attempt's start, per task. Pass it to your storage to reject an attempt that was considered dead:
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
  /** Writes to the job's log (shown in Bull Board), the run's output and the worker's logger. */
  log(message: string, details?: object): void;
}

/** Context of a run's handler. */
export interface Context extends AttemptContext {
  /** The checkpoint saved last, by the previous run or an earlier attempt of this one; undefined if there is none. */
  readonly checkpoint: Json | undefined;
  /**
   * Saves the progress of this run for later attempts and runs. Resolves when it is stored.
   * @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE` (64 KiB of JSON), `CONFLICT` if this attempt no longer owns the run
   */
  saveCheckpoint(value: Json): Promise<void>;
  /**
   * Asks for one more run at this time, recorded with this run's end; the last call counts. A time that is past means
   * at once. Of a task one such run waits: one that another run asked for before, for another time, is given up
   * (`superseded` in the skips).
   * @param time epoch ms, a Date, or ISO 8601 with an offset
   * @throws `INVALID_OPTION`
   */
  runNextAt(time: number | Date | string): void;
  /** `return partial()`: ends this run early; the next one continues from the checkpoint. Counts as success. */
  partial(result?: Json): Ending;
  /** `return nothingToDo()`: this run found no work; `lastRun` stays unchanged. */
  nothingToDo(result?: Json): Ending;
}

/** Context of an item's handler. */
export interface ItemContext extends AttemptContext {
  /** Index of the item in the generated list, from 0. */
  readonly index: number;
}
