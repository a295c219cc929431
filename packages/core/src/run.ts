import { NEVER_LATE, type Trigger } from "./job.js";
import type { Json } from "./json.js";

/** End of a run. `lost`: its job was removed before its end was recorded. */
export const OUTCOMES = [
  "succeeded",
  "failed",
  "timed-out",
  "partial",
  "cancelled",
  "dropped",
  "crashed",
  "nothing-to-do",
  "lost",
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> queued: claim
 *   queued --> running: start
 *   running --> queued: attempt failed or crashed, another is left
 *   running --> terminating: time limit or cancel
 *   running --> final: settle(outcome)
 *   terminating --> queued: timed out, another attempt is left
 *   terminating --> final: partial | timed-out | cancelled
 *   queued --> final: lost | cancelled | dropped | crashed, or as a plain worker ended it
 *   final --> queued: retried from outside (Bull Board)
 * ```
 */
export const RUN_STATES = ["queued", "running", "terminating", "final"] as const;
export type RunState = (typeof RUN_STATES)[number];

/** Outcomes that count as failures: for alerts, `rerun`, pausing and retention. */
export const FAILURES: ReadonlySet<Outcome> = new Set(["failed", "timed-out", "crashed", "lost"]);

export function isFailure(outcome: Outcome): boolean {
  return FAILURES.has(outcome);
}

/** Outcomes that count as successes: they reset the count of consecutive failures. */
export const SUCCESSES: ReadonlySet<Outcome> = new Set(["succeeded", "partial", "nothing-to-do"]);

/** The error of a run; undefined if it succeeded, even after an attempt that failed. */
export function errorOf({ outcome, error }: Pick<Run, "outcome" | "error">): string | undefined {
  return outcome !== undefined && SUCCESSES.has(outcome) ? undefined : error;
}

/**
 * Lateness of the enqueue, and the wait for a worker, in ms. No lateness for runs that are never late.
 */
export function delaysOf({
  trigger,
  due,
  enqueued,
  started,
}: Pick<Run, "trigger" | "due" | "enqueued"> & { readonly started?: number | undefined }): Pick<
  Run,
  "lateMs" | "waitMs"
> {
  // Without spreads: it is called for each of 100,000 runs.
  const delays: { -readonly [Field in "lateMs" | "waitMs"]?: number } = {};
  if (!NEVER_LATE.has(trigger)) delays.lateMs = Math.max(0, enqueued - due);
  if (started !== undefined) delays.waitMs = Math.max(0, started - enqueued);
  return delays;
}

/**
 * States of one item. `waiting`: it waits for a worker, or for its next attempt; `cancelled`: its run ended, or reached its time limit,
 * before the item did.
 */
export const ITEM_STATES = ["waiting", "active", "completed", "failed", "cancelled"] as const;
export type ItemState = (typeof ITEM_STATES)[number];

/** One item of a fan-out. Times in UTC ms of Redis time. */
export interface RunItem {
  /** Index in the answer of `generate`, from 0. A retry keeps it. */
  index: number;
  status: ItemState;
  /**
   * Data from `generate`. For an item that did not fail, `{ cut: true, length }` if its JSON has more than 1,024
   * characters.
   */
  data: Json;
  /** Time from which it was ready for a worker. */
  planned: number;
  /** Start of its first attempt. */
  started?: number;
  finished?: number;
  /** Attempts that were started, including those whose worker died. */
  attempts: number;
  /** Those whose worker died; they do not count towards `maxAttempts`. Absent: none. */
  crashes?: number;
  /** End of the wait after a crash. */
  notBefore?: number;
  /** Its idempotency key, if the time limit of an earlier run left it. */
  key?: string;
  maxAttempts: number;
  /** The worker of the newest attempt, and its process id. */
  worker?: string;
  pid?: number;
  /** The result of `process`; `{ cut: true, length }` if its JSON has more than 1,024 characters. */
  result?: Json;
  /**
   * The output of the newest attempt, printed and logged: its last 2,048 bytes. Saved every few seconds while it runs, so it is also kept
   * if its process dies.
   */
  output?: string;
  /** The error of the newest attempt: its first 500 characters. */
  error?: string;
}

/** One execution of an occurrence: one BullMQ job, one record. Times in UTC ms of Redis time. */
export interface Run {
  id: string;
  task: { queue: string; owner: string; id: string };
  type: string;
  state: RunState;
  outcome?: Outcome;
  key: string;
  nominal: number;
  due: number;
  enqueued: number;
  trigger: Trigger;
  missed?: { from: number; to: number };
  /** The run whose failed items this one does again (`client.runs.retryItems`). */
  itemsOf?: string;
  /** The node that claimed it, or the client that triggered it. */
  node: string;
  /** The name of the requester: `by` of the trigger, enqueue or backfill. Reruns keep it. */
  by?: string;
  /** The span that enqueued it, as a W3C `traceparent`; absent without tracing. */
  trace?: string;
  /** The payload of its own that a trigger gave; absent: it has the task's. One of more than 16,384 characters is cut as a result is. */
  payload?: Json;
  started?: number;
  finished?: number;
  /** From due to enqueued, in ms; absent for reruns and backfills. */
  lateMs?: number;
  /** From enqueued to the start of its first attempt, in ms; absent before that. */
  waitMs?: number;
  /** Attempts that were started, including those whose worker died. */
  attempts: number;
  /**
   * Limit of attempts, from the task's `retry` when the run was enqueued; attempts whose worker died do not count towards it.
   * Undefined: one.
   */
  maxAttempts?: number;
  /** Attempts whose worker died, at the run or at one of its items. */
  crashes?: number;
  /** Time of the request to cancel it, and its author. */
  cancel?: { at: number; by: string };
  /** End of the wait after a crash. */
  notBefore?: number;
  /** Data that its handler saved for the next run. */
  checkpoint?: Json;
  worker?: string;
  pid?: number;
  host?: string;
  error?: string;
  result?: Json;
}
