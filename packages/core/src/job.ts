import type { Json } from "./json.js";
import type { OverlapPolicy } from "./policies.js";

export const TRIGGERS = ["schedule", "catch-up", "retry", "manual", "backfill", "self", "items"] as const;
/** Reason why an occurrence was enqueued. `items`: the failed items of an earlier run of it are done again. */
export type Trigger = (typeof TRIGGERS)[number];

/** Triggers of runs that are never late: their due time is long past. */
export const NEVER_LATE: ReadonlySet<Trigger> = new Set(["retry", "backfill", "items"]);

/** Triggers of runs that a person asked for one by one: no rerun follows their failure. */
export const ASKED_FOR: ReadonlySet<Trigger> = new Set(["manual", "items"]);

/**
 * The occurrence that a job is for. Times are UTC milliseconds of Redis time. Public: plain BullMQ workers
 * read it too.
 */
export interface Occurrence {
  /**
   * The idempotency key: the same for every attempt and every retry of this occurrence, unique in the namespace.
   * `queue/owner/task@nominal`; for a manual trigger `queue/owner/task#key`, or a UUID if its requester gave no key.
   */
  key: string;
  /** The task's id. */
  task: string;
  owner: string;
  queue: string;
  /** The time that the schedule gives. */
  nominal: number;
  /** Time at which it was due: the nominal time plus jitter. */
  due: number;
  /** Time of the claim's commit. */
  enqueued: number;
  /** The task's generation after this claim. */
  generation: number;
  trigger: Trigger;
  /** The reason, if the trigger alone does not show it. */
  reason?: string;
  /** Range of missed nominal times that this occurrence also stands for, both ends included. */
  missed?: { from: number; to: number };
  /** The run whose failed items this one does again. */
  itemsOf?: string;
  /** The run's id, which is the job's id. */
  run: string;
  subject?: string;
  submitter?: string;
  group?: string;
  /** The span that enqueued it, as a W3C `traceparent`; absent without tracing. */
  trace?: string;
}

/** `job.data` of every job that Carillon adds. The job's name is the task type. */
export interface JobData<Payload = Json> {
  payload: Payload;
  occurrence: Occurrence;
}

export function occurrenceKey(task: { queue: string; owner: string; id: string }, nominal: number): string {
  return `${task.queue}/${task.owner}/${task.id}@${nominal}`;
}

/** The key of a manual occurrence whose requester chose a key. */
export function triggerKey(task: { queue: string; owner: string; id: string }, key: string): string {
  return `${task.queue}/${task.owner}/${task.id}#${key}`;
}

/** Options of one manual trigger. */
export interface TriggerOptions {
  /**
   * Names the cause of the trigger, such as a release or the id of a webhook's delivery; 1 to 128 letters, digits and `.`, `_`, `-`. All
   * triggers of a task with the same key within a day make one run, and get its answer, with `repeated`. Default: each call makes one.
   */
  key?: string | undefined;
  /** Overrides the task's overlap policy for this occurrence. */
  overlap?: OverlapPolicy | undefined;
  /** Runs it although a freeze holds its task. Default: false. */
  force?: boolean | undefined;
  /** The name to record with the run as its requester, at most 500 characters. Default: none. */
  by?: string | undefined;
  /** JSON that this one run gets instead of the task's payload. Default: the task's own. */
  payload?: unknown;
}
