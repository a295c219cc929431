import type { Run, TaskName, TaskState } from "@carillon/core";
import type {
  Attempt,
  CalendarOutcome,
  ConnectionSpec,
  PutOutcome,
  SharedCalendar,
  Store,
} from "@carillon/store";
import type { AnyTaskType } from "./task-type.js";

export interface ClientOptions {
  /** A Redis URL, several for a cluster, or an ioredis client whose options are taken over. */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `close` leaves it open. */
  store?: Store | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  /** Binds the client to one owner: it neither sees nor touches another's tasks. Default: `system`, and all are visible. */
  owner?: string | undefined;
  /** Largest payload in bytes of JSON; default 262,144. */
  maxPayloadBytes?: number | undefined;
  /** The only task types that may be put; their payloads are checked. Default: any type, checked where it is given. */
  types?: readonly AnyTaskType[] | undefined;
  /** Longest wait for a connection, in ms; default 5,000. */
  connectTimeout?: number | undefined;
}

export interface Warning {
  readonly code: string;
  readonly message: string;
}

export interface PutOptions {
  /**
   * The `revision` of the task that you changed: the put is refused where someone else has changed or deleted it since. `absent`: refused
   * where there is such a task. What is there exactly as it is put is `unchanged`, whatever this says. Default: no condition.
   */
  ifRevision?: string | undefined;
}

/** What a put did. */
export interface Put {
  readonly task: TaskName;
  readonly outcome: PutOutcome;
  readonly state: TaskState;
  /** When it is next acted on, UTC ms. */
  readonly nextExecution: number | undefined;
  readonly warnings: readonly Warning[];
}

export interface ListOptions {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  state?: TaskState | undefined;
  /** At most this many; default 100, at most 1,000. */
  limit?: number | undefined;
  /** Of the page before. */
  cursor?: string | undefined;
}

export interface EnqueueOptions {
  /** ISO 8601 with offset, a Date or epoch ms; default now. */
  at?: string | number | Date | undefined;
  /** Milliseconds from now; instead of `at`. */
  delay?: number | undefined;
  /**
   * Default: the type's name with a random end. Asked for again with a time to come, a one-off of this id has the new time and payload;
   * without one it is `CONFLICT` while the task is there, and so it is in either case where it is no one-off.
   */
  id?: string | undefined;
  queue?: string | undefined;
  owner?: string | undefined;
  priority?: number | undefined;
}

export type Enqueued =
  /** The job is in its queue. */
  | { readonly task: TaskName; readonly run: string; readonly at: number }
  /** A one-off task waits for its time. */
  | { readonly task: TaskName; readonly run: undefined; readonly at: number };

/** A run with where its attempts ran and what they printed. */
export interface RunDetails extends Run {
  readonly attemptList: readonly Attempt[];
  /** Cut where it was longer than a worker keeps. */
  readonly output: readonly { readonly attempt: number; readonly text: string; readonly cut: boolean }[];
}

export type Triggered =
  | { readonly outcome: "enqueued"; readonly run: string; readonly key: string; readonly enqueued: number }
  /** It waits until the run in its way is over. */
  | { readonly outcome: "queued"; readonly key: string }
  | { readonly outcome: "skipped"; readonly code: "SKIPPED_OVERLAP" };

/** What a put of a shared calendar did. */
export interface PutCalendar {
  readonly name: string;
  readonly outcome: CalendarOutcome;
  readonly revision: number;
  /** Tasks that were given another next time, or the same one anew. */
  readonly replanned: number;
}

export interface CalendarView extends Omit<SharedCalendar, "entries"> {
  /** How many. */
  readonly entries: number;
  /** How many tasks name it. */
  readonly tasks: number;
}
