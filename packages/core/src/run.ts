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
 *   running --> queued: attempt failed, another is left
 *   running --> final: settle(outcome)
 *   queued --> final: lost | cancelled | dropped
 *   final --> queued: retried from outside (Bull Board)
 * ```
 */
export const RUN_STATES = ["queued", "running", "final"] as const;
export type RunState = (typeof RUN_STATES)[number];

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
  attempts: number;
  worker?: string;
  pid?: number;
  host?: string;
  error?: string;
  result?: Json;
}
