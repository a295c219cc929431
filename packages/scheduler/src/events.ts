import type { EventEmitter } from "node:events";
import type { ErrorCode, SkipReason, Trigger } from "@carillon/core";
import type { Logger } from "@carillon/store";

/** One decision that this node committed. Times in UTC ms of Redis time. */
export interface Decided {
  readonly queue: string;
  /** `owner/id`. */
  readonly task: string;
  readonly nominal: number;
  readonly due: number;
  /** Time of the commit. */
  readonly at: number;
  /**
   * Earliest time at which it could have been enqueued: its due time, the time of its retry, the end of the run that it
   * waited for, or the task's last change (a resume) if that is later. `at - claimable` is the scheduler's lateness.
   */
  readonly claimable?: number;
  readonly outcome: "enqueued" | "skipped";
  readonly trigger?: Trigger;
  readonly reason?: SkipReason;
  readonly run?: string;
}

export interface Reconciled {
  readonly queue: string;
  /** The run's id, or `owner/id` for a finished task that was removed. */
  readonly run: string;
  /** An outcome, `removed` or `reopened`. */
  readonly what: string;
}

/** Events of a running node; for metrics and tests. */
export interface SchedulerEvents {
  decided: [Decided];
  /**
   * A claim that was not committed: the task or its runs changed meanwhile (`STALE`, `OVERLAP`), or it is not due yet
   * (`EARLY`).
   */
  refused: [{ queue: string; task: string; status: string }];
  /**
   * A claim of one task failed; without `task`, the claim of everything that is due in one part of the queue, or in all
   * parts.
   */
  failed: [{ queue: string; task?: string; code: ErrorCode }];
  reconciled: [Reconciled];
  /** A part of a queue was due and another node held its mutex. Not an error. */
  lost: [{ queue: string; part: string }];
  /** Redis became unusable, or usable again. */
  connection: [{ ready: boolean; message?: string }];
}

export const EVENTS = [
  ...(["decided", "refused", "failed", "reconciled", "lost", "connection"] as const),
] as const satisfies (keyof SchedulerEvents)[];

/** Emits an event. Logs what a listener throws; it never reaches the caller. */
export function emit<Event extends keyof SchedulerEvents>(
  events: EventEmitter<SchedulerEvents>,
  logger: Logger,
  event: Event,
  ...about: SchedulerEvents[Event]
): void {
  try {
    (events as EventEmitter).emit(event, ...about);
  } catch (error) {
    logger.error({ event, error: String(error) }, "a listener threw");
  }
}
