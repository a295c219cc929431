import type { ErrorCode } from "./errors.js";
import type { FreezeScope, Frozen } from "./freeze.js";

/** A task type in a queue. */
export interface Work {
  readonly queue: string;
  readonly type: string;
}

/** A task type that no live worker of its queue handles. `workers`: number of live workers of the queue. */
export interface Gap extends Work {
  readonly workers: number;
}

/** Jobs of a queue that wait for longer than they should. Numbers that are not known, or not the reader's, are absent. */
export interface WaitingJobs {
  readonly queue: string;
  /** Number of jobs that wait. */
  readonly jobs?: number;
  /** Age of the oldest run that waits for its first attempt, in ms. */
  readonly waitedMs: number;
  /** Connected workers of the queue. */
  readonly workers?: number;
  /** Jobs that they hold. */
  readonly active?: number;
  /** Time since the start of the run that has been under way longest, in ms. */
  readonly longestMs?: number;
}

type RedisCode = Extract<ErrorCode, `REDIS_${string}`>;

/** Reason why a node does not claim: its own, or the time in ms since its last heartbeat; negative: the clock of Redis went back. */
export interface NotReady {
  readonly why?: string | undefined;
  readonly silentMs?: number | undefined;
}

/** The facts of one reason why a namespace is not on time, or of a note beside them. Times in UTC ms of Redis time. */
export type StatusReasonFacts = {
  /** Absent: not known. */
  readonly since?: number;
  /** When it ends by itself, if that is known. */
  readonly until?: number;
  /** The queue, the task type and the owner that it concerns, if it does not concern all. */
  readonly queue?: string;
  readonly type?: string;
  readonly owner?: string;
} & (
  | { readonly code: RedisCode; readonly text: string; readonly hint?: string | undefined }
  /** The namespace has no task, and Redis lost writes under its nodes. */
  | { readonly code: "EMPTY" }
  | { readonly code: "NO_NODE" }
  /** Each node that is alive. */
  | { readonly code: "NODES_NOT_READY"; readonly nodes: readonly NotReady[] }
  /** Occurrences until then were decided before; none is decided again. */
  | { readonly code: "CLOCK_WENT_BACK"; readonly until: number; readonly backMs: number }
  | { readonly code: "FROZEN"; readonly scope: FreezeScope; readonly frozen: Frozen }
  | { readonly code: "QUEUE_PAUSED"; readonly queue: string; readonly pause: PauseFacts }
  | { readonly code: "NO_WORKER"; readonly gap: Gap }
  /** A worker takes runs of a type that it does not have, and fails them. */
  | { readonly code: "NO_WORKER"; readonly worker: string; readonly queue: string; readonly type: string }
  | ({ readonly code: "JOBS_NOT_TAKEN" } & WaitingJobs)
  | { readonly code: "ALERTS_UNDELIVERED"; readonly gap?: Gap | undefined }
  /** Deliveries that failed, or wait for another try. `to`: some of their hosts and addresses. */
  | {
      readonly code: "ALERTS_FAIL";
      readonly deliveries: number;
      readonly to: readonly string[];
      readonly error?: string;
    }
  /** A move that was interrupted, or waits for runs. `held`: owner and id. */
  | {
      readonly code: "TASK_HELD";
      readonly queue: string;
      readonly held: string;
      readonly from: string;
      readonly to: string;
    }
  | { readonly code: "OVERDUE"; readonly queue: string }
  | ({ readonly code: "JOBS_WAIT" } & WaitingJobs)
);

/** Reasons why a namespace is not on time, most severe first; the codes of Redis errors come before all others. */
export type StatusCode = StatusReasonFacts["code"];

/** Author, time (UTC ms) and reason of a pause, as far as they are recorded. */
export interface PauseFacts {
  readonly at?: number;
  readonly by?: string;
  readonly note?: string;
}

/** A setting of Redis with which it may lose tasks, or one that it does not show. */
export type UnsafeSetting =
  | { readonly code: "UNKNOWN_SETTINGS"; readonly settings: readonly string[] }
  | { readonly code: "AOF_OFF" }
  | { readonly code: "EVICTION"; readonly policy: string };
