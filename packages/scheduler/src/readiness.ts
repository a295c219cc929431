import type { ErrorCode } from "@carillon/core";

/** Reason why a node does no work: a small closed set, so that metrics can have it as a label. */
export type NotReadyReason = "STARTING" | "STOPPING" | "CLOCK_HELD" | Extract<ErrorCode, `REDIS_${string}`>;

/** Whether a node does its work; if not, the reason as a code and as text. */
export type Readiness = { readonly ready: true } | NotReady;

export interface NotReady {
  readonly ready: false;
  readonly reason: NotReadyReason;
  readonly why: string;
}

export function notReady(reason: NotReadyReason, why: string): NotReady {
  return { ready: false, reason, why };
}

/** @param error result of `redisError` */
export function redisNotReady({ code, message }: { code: ErrorCode; message: string }): NotReady {
  return notReady(code as NotReadyReason, message);
}
