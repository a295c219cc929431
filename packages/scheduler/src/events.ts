import type { EventEmitter } from "node:events";
import type { SkipReason, Trigger } from "@carillon/core";
import type { Logger } from "./options.js";

/** One decision that this node committed. Times in UTC ms of Redis time. */
export interface Decided {
  readonly queue: string;
  /** `owner/id`. */
  readonly task: string;
  readonly nominal: number;
  readonly due: number;
  /** When it was committed: `at - due` is the lateness. */
  readonly at: number;
  readonly outcome: "enqueued" | "skipped";
  readonly trigger?: Trigger;
  readonly reason?: SkipReason;
  readonly run?: string;
}

export interface Reconciled {
  readonly queue: string;
  /** The run's id; of a finished task that was removed, `owner/id`. */
  readonly run: string;
  /** An outcome, `removed` or `reopened`. */
  readonly what: string;
}

/** What a node tells while it runs; for metrics and tests. */
export interface SchedulerEvents {
  decided: [Decided];
  /** A claim that was not committed. `status`: `STALE` or `OVERLAP` (something else came first), `EARLY`, or `ERROR` and a text. */
  refused: [{ queue: string; task: string; status: string }];
  reconciled: [Reconciled];
  /** A part of a queue was due and another node held its mutex. Not an error. */
  lost: [{ queue: string; part: string }];
  /** Redis became unusable, or usable again. */
  connection: [{ ready: boolean; message?: string }];
}

/** A listener that throws is said, and is nobody else's matter. */
export function tell<Event extends keyof SchedulerEvents>(
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
