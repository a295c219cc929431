import type { Backoff } from "@carillon/core";
import { backoffWait } from "@carillon/core/internal";
import type { Job } from "bullmq";
import { HttpError } from "../http/errors.js";

/** Wait between the attempts of one job; `job.opts.backoff`. Times in ms. */
export interface JobBackoff {
  readonly type: "carillon";
  readonly kind: Backoff;
  /** The first wait. */
  readonly delay: number;
  /** No wait is longer. */
  readonly max: number;
}

/** For jobs whose wait Carillon computes, BullMQ calls `backoffStrategy`; plain workers use the BullMQ type named here. */
export function adoptBackoff(job: Pick<Job, "opts">): void {
  const { backoff } = job.opts;
  if (typeof backoff === "object" && "kind" in backoff) job.opts.backoff = { ...backoff, type: "carillon" };
}

/** Lets no wait of this job be longer than `most` ms. */
export function shortenBackoff(job: Pick<Job, "opts">, most: number): void {
  const { backoff } = job.opts;
  if (typeof backoff !== "object" || !("max" in backoff)) return;
  job.opts.backoff = Object.assign(backoff, { max: Math.min(Number(backoff.max), most) });
}

/** BullMQ's `settings.backoffStrategy`: the wait after the n-th failed attempt, from 1. */
export function backoffStrategy(
  attemptsMade: number,
  _type?: string,
  error?: Error,
  job?: Pick<Job, "opts">,
): number {
  const {
    kind = "exponential",
    delay = 0,
    max = Number.POSITIVE_INFINITY,
  } = (job?.opts.backoff ?? {}) as unknown as Partial<JobBackoff>;
  const asked = error instanceof HttpError ? (error.retryAfter ?? 0) : 0;
  return Math.min(Math.max(backoffWait(kind, delay, attemptsMade), asked), max);
}
