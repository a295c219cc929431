import type { Json } from "./json.js";
import type { OverlapPolicy } from "./policies.js";

export const TRIGGERS = ["schedule", "catch-up", "retry", "manual", "backfill", "self"] as const;
/** Reason why an occurrence was enqueued. */
export type Trigger = (typeof TRIGGERS)[number];

/**
 * The occurrence that a job is for. Times are UTC milliseconds of Redis time. Public: plain BullMQ workers
 * read it too.
 */
export interface Occurrence {
  /**
   * The idempotency key: the same for every attempt and every retry of this occurrence, unique in the namespace.
   * `queue/owner/task@nominal`, or a UUID for a manual trigger.
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
}

/** `job.data` of every job that Carillon adds. The job's name is the task type. */
export interface JobData<Payload = Json> {
  payload: Payload;
  occurrence: Occurrence;
}

export function occurrenceKey(task: { queue: string; owner: string; id: string }, nominal: number): string {
  return `${task.queue}/${task.owner}/${task.id}@${nominal}`;
}

/**
 * The id of a run and of its job: readable in Bull Board, and safe. BullMQ refuses ids with `:` and all-digit ids, and an id
 * that equals one of its key names would break the queue. `@` rules all three out.
 */
export function runId(taskId: string, nominal: number, token: string): string {
  return `${taskId}@${nominal.toString(36)}.${token}`;
}

/** The nominal time in a run's id. */
export function nominalOf(runId: string): number {
  return Number.parseInt(runId.slice(runId.lastIndexOf("@") + 1), 36);
}

/** The part of a run's id after the nominal time: the claim's token, and the task's number within a batch. */
export function tokenOf(runId: string): string {
  return runId.slice(runId.indexOf(".", runId.lastIndexOf("@")) + 1);
}

/** Options of one manual trigger. */
export interface TriggerOptions {
  /** Overrides the task's overlap policy for this occurrence. */
  overlap?: OverlapPolicy | undefined;
  /** Runs it although a freeze holds its task. Default: false. */
  force?: boolean | undefined;
  /** The name to record with the run as its requester, at most 500 characters. Default: none. */
  by?: string | undefined;
  /** JSON that this one run gets instead of the task's payload. Default: the task's own. */
  payload?: unknown;
}
