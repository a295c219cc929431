import type { Duration, Outcome, TaskInput, TaskName, TaskState } from "@carillon/core";
import type { ConnectionSpec, PutOutcome, Store } from "@carillon/store";
import type { TaskContract } from "../task-type.js";
import type { Telemetry } from "../telemetry.js";
import type { Preview } from "./preview.js";
import type { Task } from "./view.js";

export interface ClientOptions {
  /**
   * A Redis URL, several for a cluster, or an ioredis client whose options are taken over; or a function that returns one, and is
   * called with the first call. Missing, or undefined: an error of the first call, so that a build can load the module.
   */
  connection?: ConnectionSpec | undefined;
  /** Instead of `connection`: a store of your own; `close` leaves it open. */
  store?: Store | undefined;
  /** Default `carillon`. */
  namespace?: string | undefined;
  /** Binds the client to one owner: it neither sees nor touches another's tasks. Default: `system`, and all are visible. */
  owner?: string | undefined;
  /** The author that its changes record if a call names none, at most 500 characters. Default: none. */
  by?: string | undefined;
  /** Origin of its changes, for the change log, at most 500 characters: `deploy build-7`. Default: `sdk` and the host's name. */
  origin?: string | undefined;
  /** Largest payload in bytes of JSON; default 262,144. */
  maxPayloadBytes?: number | undefined;
  /** The only task types that may be put; their payloads are checked. Default: any type, checked where it is given. */
  types?: readonly TaskContract[] | undefined;
  /** Longest wait for a connection; default 5 s. */
  connectTimeout?: Duration | undefined;
  /** Called again and again while a call puts or changes many tasks, with the number done since the time before. */
  onProgress?: ((tasks: number) => void) | undefined;
  /** `openTelemetry()` of `@carillon/sdk/otel`: a span for each put, trigger and enqueue, whose trace the run goes on with. Default: none. */
  telemetry?: Telemetry | undefined;
}

/** Something that is valid, but probably not intended. */
export interface Warning {
  /**
   * Stable, for programs: `NO_NEXT` (all times are past), `STAYS_PAUSED`, `NEVER_RERUNS`, `DEADLINE_IN_PAUSE`, `LOOKS_LIKE_SECONDS`, `URL_NOT_PUBLIC`,
   * `NO_NODE` (no scheduler node is alive), `NO_WORKER` (no live worker
   * handles the task's type in its queue), `MATCHES_NOTHING`
   * (the scope of a hold), and those of `lintSchedule`.
   */
  readonly code: string;
  readonly message: string;
  /** The way to fix it, as one sentence. */
  readonly remedy: string;
}

export interface AuthorOptions {
  /**
   * The name to record with the task as its author, at most 500 characters: `updatedBy`, and `createdBy` of a new task.
   * Default: the client's `by`. A put that changes nothing records no author.
   */
  by?: string | undefined;
}

export interface PutManyOptions extends AuthorOptions {
  /** Checks everything and stores nothing: the answers have a `preview`. Default: false. */
  dryRun?: boolean | undefined;
}

export interface PutOptions extends PutManyOptions {
  /**
   * The `revision` of the task that you changed: the put is refused if someone else has changed or deleted it since.
   * `absent`: refused if the task exists. A task that is stored exactly as it is put is `unchanged`, whatever the
   * revision. Default: no condition.
   */
  ifRevision?: string | undefined;
}

export interface DeleteOptions {
  /** The author to record in the change log. Default: the client's `by`. */
  by?: string | undefined;
}

/** Result of a put. */
export interface PutResult {
  readonly task: TaskName;
  readonly outcome: PutOutcome;
  readonly state: TaskState;
  /** The schedule in words; computed, never stored. */
  readonly humanized: string;
  /** Time at which it is next acted on, UTC ms; undefined while paused or finished. */
  readonly nextExecution: number | undefined;
  readonly warnings: readonly Warning[];
  /** With `dryRun`: the differences that the put would make. Computed when it is read. */
  readonly preview?: Preview | undefined;
}

export interface PauseOptions {
  note?: string | undefined;
  /** The author to record. Default: the client's `by`. */
  by?: string | undefined;
  /** Also cancel its queued runs. Default false. */
  cancelQueued?: boolean | undefined;
}

export interface ResumeOptions {
  /**
   * Rule for occurrences that fell due meanwhile: `skip`, or `catch-up`: the task's catch-up policy decides about them.
   * Default `skip`.
   */
  missed?: "skip" | "catch-up" | undefined;
  /** `live` or `shadow` from now on: see `TaskInput`. Default: as it was. */
  mode?: "live" | "shadow" | undefined;
  /** The author to record. Default: the client's `by`. */
  by?: string | undefined;
}

export interface ListOptions {
  queue?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  /** Only tasks that this set defines. */
  set?: string | undefined;
  state?: TaskState | undefined;
  /**
   * Only tasks whose last run ended in one of these ways. The last run is the last one that is over and did something, as in
   * `client.runs.stats`.
   */
  outcome?: Outcome | readonly Outcome[] | undefined;
  /** Only tasks whose last run is a failure: failed, timed-out, crashed or lost. Not together with `outcome`. */
  failing?: boolean | undefined;
  /**
   * Only tasks with an occurrence that is due for more than a second and that no node has claimed. What a freeze holds
   * is not overdue.
   */
  overdue?: boolean | undefined;
  /** Only tasks of which no run has ended. Not together with `outcome`, `failing` or `sort: "last"`. */
  neverRan?: boolean | undefined;
  /** Only tasks whose `owner/id` or type contains this text, in any case of letters. */
  search?: string | undefined;
  /**
   * `next`: by next time, earliest first, without tasks that have none; a task with an occurrence that waits, for a
   * run's end for example, comes at the time of its next check. `last`: by the end of the last run, newest first,
   * without tasks that have none. Default `name`: by queue, owner, id.
   */
  sort?: "name" | "next" | "last" | undefined;
  /**
   * Also the deliveries of alerts to webhooks: one-off tasks of the queue `carillon-alerts`. Naming that queue shows
   * them too.
   */
  deliveries?: boolean | undefined;
  /** At most this many; default 100, at most 1,000. */
  limit?: number | undefined;
  /** The cursor of the previous page. */
  cursor?: string | undefined;
}

/**
 * A page of `list`. One page checks at most some thousand names: if a filter matches few of very many tasks, a page may
 * be short or even empty, and has a cursor.
 */
export interface TaskPage {
  readonly tasks: Task[];
  /** Names among these whose data is corrupt, or of a newer version; absent: none. As far as indexes tell, they match. */
  readonly unreadable?: readonly TaskName[];
  /** Gives the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/** Besides these the policies of its run, as `put` takes them. */
export interface EnqueueOptions
  extends Pick<TaskInput, "retry" | "timeLimit" | "timeLimitGrace" | "crash" | "alerts" | "alertIf"> {
  /** ISO 8601 with offset, a Date or epoch ms; default now. A time that is past means now. */
  at?: string | number | Date | undefined;
  /** From now; instead of `at`: `"5m"`, or milliseconds. */
  delay?: Duration | undefined;
  /**
   * Default: the type's name with a random end. Asked for again with a time to come, a one-off of this id has the new
   * time and payload; without one it is `CONFLICT` while the task exists. It is always `CONFLICT` if the task is not a
   * one-off.
   */
  id?: string | undefined;
  queue?: string | undefined;
  owner?: string | undefined;
  priority?: number | undefined;
  /** The name to record with the run as its requester, at most 500 characters. Default: the client's `by`. */
  by?: string | undefined;
}

/** The answer of `client.enqueue`. */
export interface EnqueueResult {
  readonly task: TaskName;
  /** The run whose job is in its queue; undefined: a one-off task waits for its time. */
  readonly run: string | undefined;
  /** UTC ms. */
  readonly at: number;
  /**
   * `NO_WORKER`, if no live worker handles the type; `NO_NODE`, if none is alive and one is needed; `PAST_TIME`, if `at` is more than a
   * minute past; and those of a put about its policies.
   */
  readonly warnings: readonly Warning[];
}

/**
 * Result of a `trigger`. `key`: the idempotency key of its handler. `repeated`: the task was triggered with the same `key` within the last
 * day, and this is the answer that call got.
 */
export type TriggerResult =
  /** `warnings`: `NO_WORKER`. */
  | {
      readonly outcome: "enqueued";
      readonly run: string;
      readonly key: string;
      readonly enqueued: number;
      readonly repeated: boolean;
      readonly warnings: readonly Warning[];
    }
  /** It waits until the run in its way is over. */
  | {
      readonly outcome: "queued";
      readonly key: string;
      readonly repeated: boolean;
      readonly warnings: readonly Warning[];
    }
  | { readonly outcome: "skipped"; readonly code: "SKIPPED_OVERLAP" };
