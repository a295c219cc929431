import type { Json } from "./json.js";
import type { OverlapPolicy } from "./policies.js";

/** Why an occurrence was enqueued. */
export type Trigger = "schedule" | "catch-up" | "retry" | "manual" | "backfill" | "self";

/**
 * What every job says about itself. Times are UTC milliseconds of Redis time. Public: workers that are not
 * Carillon's read it too.
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
  /** The time that the schedule names. */
  nominal: number;
  /** When it was to be acted on: the nominal time plus jitter. */
  due: number;
  /** When the claim committed. */
  enqueued: number;
  /** The task's generation that this claim made. */
  generation: number;
  trigger: Trigger;
  /** Why, where the trigger alone does not say it. */
  reason?: string;
  /** The nominal times that this occurrence stands for, besides its own: both ends included. */
  missed?: { from: number; to: number };
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
 * Run and job id in one: readable in Bull Board, and safe there: BullMQ refuses `:` and all-digit ids, and an id
 * that equals one of its own key names would brick the queue. `@` rules all three out.
 */
export function runId(taskId: string, nominal: number, token: string): string {
  return `${taskId}@${nominal.toString(36)}.${token}`;
}

/** What comes after the nominal time in a run's id: the claim's token, and in a batch which of its tasks it was. */
export function tokenOf(runId: string): string {
  return runId.slice(runId.indexOf(".", runId.lastIndexOf("@")) + 1);
}

/** What is asked of one manual trigger. */
export interface TriggerOptions {
  /** Overrides the task's overlap policy for this occurrence. */
  overlap?: OverlapPolicy | undefined;
}
