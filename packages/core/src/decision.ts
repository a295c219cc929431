import type { Freeze, Frozen } from "./freeze.js";
import type { Trigger } from "./job.js";
import type { Json } from "./json.js";
import type { CatchUpPolicy, OverlapPolicy, Policies } from "./policies.js";
import type { Slot, TaskSchedule } from "./task-schedule.js";

export const SKIP_REASONS = [
  "manual-overlap",
  "manual-superseded",
  "overlap",
  "behind",
  "missed",
  "paused",
  "excluded",
  "frozen",
  "quota",
  "superseded",
  "retry-superseded",
  "shadow",
] as const;
/**
 * Reason why an occurrence was skipped. `behind`: as `overlap`, but workers had not begun the run in the way, or only just;
 * `frozen`: a freeze held its task; `quota`: a quota of its owner or of the namespace was used up; `manual-overlap`:
 * the overlap policy refused a manual trigger; `superseded`: another occurrence took its place; `retry-superseded`: the
 * next occurrence came before the retry of a failed run; `shadow`: it would have been enqueued, but its task is a shadow.
 */
export type SkipReason = (typeof SKIP_REASONS)[number];

/** An occurrence that waits, for the end of a run or for its own time. Stored with the task. */
export interface Pending {
  /** The occurrence's idempotency key. */
  readonly key: string;
  readonly nominal: number;
  readonly due: number;
  readonly trigger: Trigger;
  readonly missed?: { readonly from: number; readonly to: number };
  /** The run whose failed items this occurrence does again. */
  readonly itemsOf?: string;
  /** Earliest time at which it may be enqueued. Undefined: as soon as no run blocks it. */
  readonly at?: number;
  /** Overrides the task's policy. */
  readonly overlap?: OverlapPolicy;
  /** The name of the requester, if one was given. */
  readonly by?: string;
  /** Replaces the task's payload. */
  readonly payload?: Json;
  /** The trace that it belongs to, as a W3C `traceparent`. */
  readonly trace?: string;
}

/** A run that is not over. Times in UTC ms. */
export interface RunInWay {
  readonly nominal: number;
  /** Undefined: no worker has begun it. */
  readonly begun: number | undefined;
  /** Undefined: unknown. */
  readonly enqueued?: number | undefined;
}

/** A due task as a claim sees it. Times in UTC ms of Redis time. */
export interface DueTask {
  /** The schedule's next time; undefined if none is left, or if it follows the end of a run. */
  readonly slot: Slot | undefined;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly policies: Pick<Policies, "maxQueued" | "catchUpLimits">;
  readonly schedule: TaskSchedule;
  /** Number of occurrences of the schedule that were enqueued before. */
  readonly fired: number;
  /** Whether an earlier run's job is not finished, by the job's own state. */
  readonly running: boolean;
  /** The earlier run, if its start is known. */
  readonly inWay?: RunInWay | undefined;
  readonly pending: readonly Pending[];
  /** The freezes whose scope the task is in. Default: none. */
  readonly freezes?: readonly Freeze[];
  /** Time since which nodes have been late with all tasks, although they claimed. Default: unknown. */
  readonly behindSince?: number | undefined;
  /** The quotas that apply to it. `full`: the quota of waiting jobs is used up. Default: none. */
  readonly quota?: { readonly interval: number; readonly full: boolean };
  /** Whether its schedule names a single time. */
  readonly once?: boolean;
  /** Whether times of its schedule are only recorded. Default: false. */
  readonly shadow?: boolean;
  /** Returns the idempotency key of a nominal time. */
  readonly keyOf: (nominal: number) => string;
}

/** Consecutive nominal times that were passed over, both ends included. */
export interface Skipped {
  readonly reason: SkipReason;
  readonly from: number;
  readonly to: number;
  /** Text that is kept with the skip. */
  readonly note?: string;
}

/** The next time of a task, or a delay in ms after the end of the run that is being enqueued. */
export type Next = Slot | { readonly afterFinish: number };

/** An occurrence that becomes a job. */
export type Enqueue = Omit<Pending, "at" | "overlap">;

/**
 * The decision about a due task: at most one occurrence is enqueued, or kept for later; all others between the old cursor
 * and the new one are skipped, each with its reason.
 */
export interface Decision {
  readonly enqueue?: Enqueue;
  /** The occurrence that a shadow would have enqueued; it is among `skipped`, and counts towards `maxRuns`. */
  readonly shadow?: Enqueue;
  readonly skipped: readonly Skipped[];
  /** The last nominal time that is now decided; undefined if unchanged. */
  readonly cursor?: number;
  /** `kept` if unchanged; undefined if the schedule has no time left. */
  readonly next: Next | "kept" | undefined;
  /** Occurrences that wait from now on. */
  readonly pending: readonly Pending[];
  /** The enqueued occurrence was counted towards `maxRuns` before. */
  readonly uncounted?: true;
  /** Cancel the runs that block the occurrence. */
  readonly cancel?: true;
  /** A freeze holds due occurrences: they are checked again at its end, or when it is lifted. */
  readonly frozen?: Frozen;
}

/** The occurrence of a time of the schedule. */
export function scheduled(task: DueTask, { nominal, due }: Slot, trigger: Trigger): Enqueue {
  return { key: task.keyOf(nominal), nominal, due, trigger };
}
