import type { Trigger } from "./job.js";
import type { Json } from "./json.js";

/** How a run ended. `lost`: its job was gone before anyone could say. */
export const OUTCOMES = [
  "succeeded",
  "failed",
  "timed-out",
  "quota",
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
 *   terminating --> final: quota | timed-out | cancelled
 *   queued --> final: lost | cancelled | dropped | crashed, or as a plain worker ended it
 *   final --> queued: retried from outside (Bull Board)
 * ```
 */
export const RUN_STATES = ["queued", "running", "terminating", "final"] as const;
export type RunState = (typeof RUN_STATES)[number];

/** Ends that count as a failure: for alerts, backoff, pausing, and for how long they are kept. */
const FAILURES: ReadonlySet<Outcome> = new Set(["failed", "timed-out", "crashed", "lost"]);

export function isFailure(outcome: Outcome): boolean {
  return FAILURES.has(outcome);
}

/** Ends that count as a success: they end a row of failures. */
const SUCCESSES: ReadonlySet<Outcome> = new Set(["succeeded", "quota", "nothing-to-do"]);

/** What a run failed with; undefined where it succeeded, also after an attempt that had failed. */
export function errorOf({ outcome, error }: Pick<Run, "outcome" | "error">): string | undefined {
  return outcome !== undefined && SUCCESSES.has(outcome) ? undefined : error;
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
  /** The node that claimed it, or the client that triggered it. */
  node: string;
  started?: number;
  finished?: number;
  /** Attempts that were started, those whose worker died among them. */
  attempts: number;
  /** Attempts that may end, as its task's `retry` said when it was enqueued: one whose worker died does not count. Undefined: one. */
  maxAttempts?: number;
  /** Attempts whose worker died. */
  crashes?: number;
  /** Someone wants it cancelled. */
  cancel?: { at: number; by: string };
  /** The wait after a crash is over then. */
  notBefore?: number;
  /** What its handler saved for the next run. */
  checkpoint?: Json;
  worker?: string;
  pid?: number;
  host?: string;
  error?: string;
  result?: Json;
}
