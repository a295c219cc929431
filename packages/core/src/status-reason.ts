import type { ErrorCode } from "./errors.js";
import { type FreezeScope, type Frozen, frozenText } from "./freeze.js";
import { formatDuration } from "./schedule/index.js";

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
  | { readonly code: RedisCode; readonly text: string; readonly hint: string | undefined }
  /** The namespace has no task, and Redis lost writes under its nodes. */
  | { readonly code: "EMPTY" }
  | { readonly code: "NO_NODE" }
  /** `why`: of each node that is alive. */
  | { readonly code: "NODES_NOT_READY"; readonly why: readonly string[] }
  /** Occurrences until then were decided before; none is decided again. */
  | { readonly code: "CLOCK_WENT_BACK"; readonly until: number; readonly backMs: number }
  | { readonly code: "FROZEN"; readonly scope: FreezeScope; readonly frozen: Frozen }
  | { readonly code: "QUEUE_PAUSED"; readonly queue: string; readonly pause: PauseFacts }
  | { readonly code: "NO_WORKER"; readonly gap: Gap }
  /** A worker takes runs of a type that it does not have, and fails them. */
  | { readonly code: "NO_WORKER"; readonly worker: string; readonly queue: string; readonly type: string }
  | ({ readonly code: "JOBS_NOT_TAKEN" } & WaitingJobs)
  | { readonly code: "ALERTS_UNDELIVERED"; readonly gap: Gap | undefined }
  /** Deliveries that failed, or wait for another try. `to`: some of their hosts and addresses. */
  | {
      readonly code: "ALERTS_FAIL";
      readonly deliveries: number;
      readonly to: readonly string[];
      readonly error?: string;
    }
  /** A move that was interrupted, or waits for runs. `task`: owner and id. */
  | {
      readonly code: "TASK_HELD";
      readonly queue: string;
      readonly task: string;
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

/** The fact of a reason in one sentence. */
export function reasonText(reason: StatusReasonFacts): string {
  switch (reason.code) {
    case "EMPTY":
      return "Redis has lost its data: no task of this namespace is left.";
    case "NO_NODE":
      return "no scheduler node is alive.";
    case "NODES_NOT_READY":
      return notReadyText(reason.why);
    case "CLOCK_WENT_BACK":
      return `the clock of Redis went back by ${inSeconds(reason.backMs)}: tasks that had run wait until ${timeText(reason.until)}.`;
    case "FROZEN":
      return `${scopeText(reason.scope)}: ${frozenText(reason.frozen)}.`;
    case "QUEUE_PAUSED":
      return `the queue ${reason.queue} is paused${byText(reason.pause)}.`;
    case "NO_WORKER":
      if ("gap" in reason) return `${gapText(reason.gap)}.`;
      return `the worker ${reason.worker} fails the runs of type ${reason.type} that it takes from the queue ${reason.queue}: it does not have the type.`;
    case "JOBS_NOT_TAKEN":
      return `the queue ${reason.queue}: ${waitText(reason)}, and ${reason.workers === 1 ? "its worker takes" : "its workers take"} none.`;
    case "ALERTS_UNDELIVERED":
      return `alerts wait for their delivery${reason.gap ? `: ${gapText(reason.gap)}` : ""}.`;
    case "TASK_HELD":
      return `the task ${reason.task} does not run: a move from queue ${reason.from} to ${reason.to} holds it.`;
    case "ALERTS_FAIL":
      return failingText(reason.deliveries, reason.to, reason.error);
    case "OVERDUE":
      return `the queue ${reason.queue} has occurrences that are due and that no node has claimed.`;
    case "JOBS_WAIT":
      return `the queue ${reason.queue}: ${waitText(reason)}${busyText(reason)}.`;
    default:
      return reason.text;
  }
}

function failingText(deliveries: number, to: readonly string[], error: string | undefined): string {
  const what = deliveries === 1 ? "1 delivery of alerts has" : `${deliveries} deliveries of alerts have`;
  const where = to.length === 0 ? "" : `, to ${to.join(", ")}`;
  return `${what} failed or wait${deliveries === 1 ? "s" : ""} for another try${where}${error === undefined ? "" : `: ${error.replace(/\.$/, "")}`}.`;
}

/** The gap in words. */
export function gapText({ queue, type, workers }: Gap): string {
  if (workers === 0) return `no worker works the queue ${queue}`;
  const have = workers === 1 ? "its 1 worker does not have it" : `none of its ${workers} workers has it`;
  return `no worker of the queue ${queue} handles the type ${type}: ${have}`;
}

/** Author, time and reason of a pause, as far as they are recorded: ` (by ann since 2026-01-01T00:00:00Z: deploy)`. */
export function pauseText({ at, by, note }: PauseFacts): string {
  if (at === undefined) return "";
  const who = by === undefined ? "" : `by ${by} `;
  const why = note === undefined ? "" : `: ${note}`;
  return ` (${who}since ${timeText(at)}${why})`;
}

/** Without the time, which the reason has. */
function byText({ by, note }: PauseFacts): string {
  return `${by === undefined ? "" : ` by ${by}`}${note === undefined ? "" : `: ${note}`}`;
}

function notReadyText(why: readonly string[]): string {
  const reasons = [...new Set(why.filter(Boolean))].map((one) => one.replace(/\.$/, ""));
  const nodes = why.length === 1 ? "the node is not ready" : `none of the ${why.length} nodes is ready`;
  return reasons.length > 0 ? `${nodes}: ${reasons.join("; ")}.` : `${nodes}.`;
}

function scopeText({ owner, tag, queue }: FreezeScope): string {
  const parts = Object.entries({ owner, tag, queue }).flatMap(([part, name]) =>
    name === undefined ? [] : [`${part} ${name}`],
  );
  return parts.join(", ") || "all tasks";
}

function waitText({ jobs, waitedMs }: WaitingJobs): string {
  const wait = `for ${inSeconds(waitedMs)}`;
  if (jobs === undefined) return `runs wait for a worker, the oldest ${wait}`;
  return jobs === 1 ? `1 job has waited ${wait}` : `${jobs} jobs wait, the oldest ${wait}`;
}

function busyText({ workers, active, longestMs }: WaitingJobs): string {
  if (active === undefined) return "";
  const who =
    workers === undefined
      ? "its workers have"
      : workers === 1
        ? "its worker has"
        : `its ${workers} workers have`;
  const what = active === 1 ? "1 run" : `${active} runs`;
  const longest =
    longestMs === undefined ? "" : `${active === 1 ? "" : ", the longest"} for ${inSeconds(longestMs)}`;
  return `; ${who} ${what} under way${longest}`;
}

function timeText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, "Z");
}

function inSeconds(ms: number): string {
  return formatDuration(Math.floor(ms / 1_000) * 1_000);
}
