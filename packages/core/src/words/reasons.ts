import type { FreezeScope, Frozen } from "../freeze.js";
import type { TaskName } from "../names.js";
import type {
  DueOwner,
  Gap,
  NotReady,
  PauseFacts,
  QueueLimit,
  StatusCode,
  StatusReasonFacts,
  UnsafeSetting,
  WaitingJobs,
} from "../status-reason.js";
import { countText, duration, formatInstant, whole } from "./times.js";

/** As answers of operations have it: fields may be undefined. */
type Loose<Facts> = { readonly [Field in keyof Facts]?: Facts[Field] | undefined };

/** The fact of a reason in one sentence. @param time default: UTC */
export function reasonText(reason: StatusReasonFacts, time = formatInstant): string {
  switch (reason.code) {
    case "EMPTY":
      return "Redis has lost its data: no task of this namespace is left.";
    case "NO_NODE":
      return "no scheduler node is alive.";
    case "NODES_NOT_READY":
      return notReadyText(reason.nodes);
    case "CLOCK_WENT_BACK":
      return `the clock of Redis went back by ${duration(reason.backMs)}: tasks that had run wait until ${time(whole(reason.until))}.`;
    case "AOF_OFF":
    case "EVICTION":
      return settingText(reason);
    case "SAME_NODE_ID": {
      const all = reason.processes.map(({ host, pid }) => `process ${pid} on ${host}`);
      return `${all.length} nodes have the id ${reason.node}: ${all.join(", ")}.`;
    }
    case "SILENCED":
      return `all alerts are silenced${untilText(reason.silence, time(whole(reason.until)))}.`;
    case "FROZEN":
      return `${reason.scope.tasks?.length === 1 ? "the task " : ""}${scopeText(reason.scope)}: ${frozenText(reason.frozen, time)}.`;
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
      return `the task ${reason.held} does not run: a move from queue ${reason.from} to ${reason.to} holds it.`;
    case "RUNS_FAIL": {
      const { queues, failed, ended, cause } = reason;
      const where = queues.length === 1 ? `of the queue ${queues[0]}` : `of ${queues.length} queues`;
      const why = cause.error === "" ? "" : `, ${cause.runs} with: ${cause.error.replace(/\.$/, "")}`;
      return `${failed} of the newest ${ended} runs ${where} failed${why}.`;
    }
    case "ALERTS_FAIL":
      return failingText(reason.deliveries, reason.to, reason.error);
    case "OVERDUE":
      return `the queue ${reason.queue} has occurrences that are due and that no node has claimed${reason.most ? `: ${dueOwnerText(reason.most)}` : ""}.`;
    case "JOBS_WAIT":
      return `the queue ${reason.queue}: ${waitText(reason)}${busyText(reason)}${holdsText(reason.limit)}.`;
    case "JOBS_LIMITED":
      return `the queue ${reason.queue}: ${waitText(reason)}${holdsText(reason.limit)}.`;
    default:
      return reason.text;
  }
}

function failingText(deliveries: number, to: readonly string[], error: string | undefined): string {
  const what = countText(deliveries, "delivery of alerts has", "deliveries of alerts have");
  const where = to.length === 0 ? "" : `, to ${to.join(", ")}`;
  return `${what} failed or wait${deliveries === 1 ? "s" : ""} for another try${where}${error === undefined ? "" : `: ${error.replace(/\.$/, "")}`}.`;
}

export function settingText(setting: UnsafeSetting): string {
  switch (setting.code) {
    case "UNKNOWN_SETTINGS":
      return `Redis does not show ${setting.settings.join(" and ")}.`;
    case "AOF_OFF":
      return "appendonly is off: a restart of Redis loses acknowledged writes.";
    case "EVICTION":
      return `maxmemory-policy is ${setting.policy}: Redis may drop tasks and jobs.`;
  }
}

/** A task whose owner and id others have too. @param queues theirs */
export function sameIdText(local: string, queues: readonly string[]): string {
  const where = queues.length === 1 ? `the queue ${queues[0]}` : `the queues ${queues.join(", ")}`;
  return `Another task ${local} is in ${where}: both run.`;
}

export function gapText({ queue, type, workers }: Gap): string {
  if (workers === 0) return `no worker works the queue ${queue}`;
  const have = workers === 1 ? "its 1 worker does not have it" : `none of its ${workers} workers has it`;
  return `no worker of the queue ${queue} handles the type ${type}: ${have}`;
}

/** The owner's part in words: `49,210 of 50,060 are of owner giant`. */
export function dueOwnerText({ owner, tasks, read, due }: DueOwner): string {
  const all = read < due ? `the ${number(read)} oldest, of ${number(due)},` : number(due);
  return `${number(tasks)} of ${all} ${read === 1 ? "is" : "are"} of owner ${owner}`;
}

export function ownerLimitText(owner: string, runs: number): string {
  return `held by the limit of ${countText(runs, "run")} of owner ${owner}`;
}

/** Author, time and reason of a pause, as far as they are recorded: ` (by ann since 2026-01-01T00:00:00Z: deploy)`. */
export function pauseText({ at, by, note }: Loose<PauseFacts>, time = formatInstant): string {
  if (at === undefined) return "";
  const who = by === undefined ? "" : `by ${by} `;
  const why = note === undefined ? "" : `: ${note}`;
  return ` (${who}since ${time(whole(at))}${why})`;
}

/** A freeze that holds: `frozen by ann until 2026-01-05T14:00:00Z: INC-43`. */
export function frozenText({ by, until, note }: Loose<Frozen>, time = formatInstant): string {
  return `frozen${untilText({ by, note }, until === undefined ? "it is lifted" : time(until))}`;
}

function untilText({ by, note }: Loose<PauseFacts>, end: string): string {
  return `${byText({ by })} until ${end}${byText({ note })}`;
}

/** Without the time, which the reason has. */
function byText({ by, note }: Loose<PauseFacts>): string {
  return `${by === undefined ? "" : ` by ${by}`}${note === undefined ? "" : `: ${note}`}`;
}

/** Undefined: the node gives no reason. */
export function silenceText({ why, silentMs }: NotReady): string | undefined {
  if (silentMs === undefined) return why;
  if (silentMs < 0) return "no beat since the clock of Redis went back";
  return `no beat for ${Math.round(silentMs / 1_000)} s`;
}

function notReadyText(all: readonly NotReady[]): string {
  const why = all.map(silenceText).filter((one) => one !== undefined);
  const reasons = [...new Set(why)].map((one) => one.replace(/\.$/, ""));
  const nodes = all.length === 1 ? "the node is not ready" : `none of the ${all.length} nodes is ready`;
  return reasons.length > 0 ? `${nodes}: ${reasons.join("; ")}.` : `${nodes}.`;
}

export function covers(
  { owner, tag, queue, tasks }: FreezeScope,
  task: TaskName & { readonly tags?: readonly string[] | undefined },
): boolean {
  if (tasks?.every((one) => one.id !== task.id || one.owner !== task.owner || one.queue !== task.queue))
    return false;
  if (owner !== undefined && owner !== task.owner) return false;
  if (queue !== undefined && queue !== task.queue) return false;
  return tag === undefined || (task.tags ?? []).includes(tag);
}

/** Whether work is late for this reason and continues: the state is `behind`, not `stopped`. */
export function isLate({ code }: { readonly code: StatusCode }): boolean {
  return code === "OVERDUE" || code === "JOBS_WAIT";
}

/** A scope in words: `owner acme, tag billing`, `acme/nightly`, `12 tasks`, `all tasks`. */
export function scopeText({ owner, tag, queue, tasks = [] }: FreezeScope): string {
  const [one] = tasks;
  if (one) return tasks.length > 1 ? `${tasks.length} tasks` : `${one.owner}/${one.id}`;
  const parts = Object.entries({ owner, tag, queue }).flatMap(([part, name]) =>
    name === undefined ? [] : [`${part} ${name}`],
  );
  return parts.join(", ") || "all tasks";
}

function waitText({ jobs, waitedMs }: WaitingJobs): string {
  const wait = `for ${duration(waitedMs)}`;
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
  const longest =
    longestMs === undefined ? "" : `${active === 1 ? "" : ", the longest"} for ${duration(longestMs)}`;
  return `; ${who} ${countText(active, "run")} under way${longest}`;
}

function number(n: number): string {
  return n.toLocaleString("en");
}

function holdsText(limit: Loose<QueueLimit> = {}): string {
  const { holds } = limit;
  return holds === undefined
    ? ""
    : `; BullMQ's own limit of ${limitText({ [holds]: limit[holds], holds })} holds them`;
}

/** BullMQ's own limits of a queue: `4 runs at a time, 100 runs per 1 min`. */
export function limitText({ runs, rate, holds }: Loose<QueueLimit>): string {
  const limits = [
    ...(runs === undefined ? [] : [`${countText(runs, "run")} at a time`]),
    ...(rate ? [`${countText(rate.jobs, "run")} per ${duration(rate.ms)}`] : []),
  ];
  // The option of a worker is not stored.
  return limits.length === 0 && holds === "rate" ? "runs per period" : limits.join(", ");
}
