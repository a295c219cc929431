import type { Json, Outcome } from "@carillon/core";
import { PermanentError } from "../permanent-error.js";
import { Ending } from "./ending.js";
import { asError, errorText, isPermanent, LockLostError } from "./errors.js";
import type { Ended, TimeBox } from "./time-box.js";

export type JobEnd =
  | { readonly end: "complete"; readonly value: Json | undefined }
  /** BullMQ retries if attempts are left and the error allows it. */
  | { readonly end: "fail"; readonly error: Error }
  /** Back to the queue, not counted as an attempt. */
  | { readonly end: "hand back" }
  /** The same, but not before `until`, UTC ms. */
  | { readonly end: "delay"; readonly until: number }
  /** Continues when all of its items are done. */
  | { readonly end: "await items" };

/** The record of the run. Without an outcome, another attempt follows. */
export interface RunEnd {
  readonly outcome: Outcome | undefined;
  readonly error?: string | undefined;
  readonly result?: Json | undefined;
}

export interface Verdict {
  /** Undefined: the report of this attempt does not count. */
  readonly run: RunEnd | undefined;
  readonly job: JobEnd;
}

/**
 * Decides how the end of an attempt affects its run and job.
 * @param last no attempt is left after this one
 */
export function verdictOf(
  ended: Ended<Json | undefined | Ending>,
  box: Pick<TimeBox, "received" | "signal">,
  last: boolean,
): Verdict {
  const { received } = box;
  if (received.has("lost")) {
    // The worker that has the job now settles the run.
    return { run: undefined, job: { end: "fail", error: new LockLostError() } };
  }
  if (received.has("cancelled")) return cancelled(ended);
  if (ended.how === "returned") return returned(ended.value, received.has("timed-out"));
  const error = asError(ended.error);
  const timedOut = received.has("timed-out");
  const permanent = isPermanent(error);
  const final = last || permanent;
  if (received.has("stopping") && !timedOut && !permanent)
    return { run: { outcome: undefined }, job: { end: "hand back" } };
  const outcome = timedOut ? "timed-out" : "failed";
  const late = timedOut && ended.how === "threw" ? box.signal.reason : error;
  const reason = late === error ? "" : `${late}\n`;
  return {
    run: { outcome: final ? outcome : undefined, error: reason + errorText(error) },
    job: { end: "fail", error },
  };
}

function returned(value: Json | undefined | Ending, timedOut: boolean): Verdict {
  const run =
    value instanceof Ending
      ? { outcome: value.outcome, result: value.result }
      : { outcome: timedOut ? ("partial" as const) : ("succeeded" as const), result: value };
  return { run, job: { end: "complete", value: run.result } };
}

function cancelled(ended: Ended<unknown>): Verdict {
  const run = { outcome: "cancelled" as const };
  if (ended.how === "returned") return { run, job: { end: "complete", value: undefined } };
  const error = errorText(asError(ended.error));
  return { run: { ...run, error }, job: { end: "fail", error: new PermanentError("cancelled") } };
}
