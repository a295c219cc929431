import { reasonText, type StatusCode, type StatusReasonFacts } from "@carillon/core/internal";
import { readStatus, type StatusFacts } from "@carillon/store";
import type { Scope } from "./scope.js";

/** A reason why a namespace is not on time, or a note about something that does not change that. */
export interface StatusReason {
  readonly code: StatusCode;
  readonly message: string;
  readonly remedy: string;
  readonly queue?: string;
  /** The task type that no worker handles. */
  readonly type?: string;
  /** The owner, if the client is bound to one. */
  readonly owner?: string;
  /** UTC ms; absent if it is not known. */
  readonly since?: number;
  /** When it ends by itself, UTC ms; absent if it does not, or if that is not known. */
  readonly until?: number;
}

/** Whether the work of a namespace is on time; if not, why. Times in UTC ms of Redis time. */
export interface Status extends Omit<StatusFacts, "reasons" | "notes"> {
  /** The time from which it is behind; absent if it is not. */
  readonly since?: number;
  /** Most severe first; empty if the state is `on-time`. */
  readonly reasons: readonly StatusReason[];
  /**
   * Facts that do not change the state: freezes (`FROZEN`), pauses of queues that recorded their time (`QUEUE_PAUSED`), and receivers that do
   * not take their alerts (`ALERTS_FAIL`).
   */
  readonly notes: readonly StatusReason[];
}

/** Never throws because of Redis. */
export async function status(scope: Scope): Promise<Status> {
  const { reasons, notes, ...facts } = await readStatus(scope);
  const { at, behind } = facts;
  const since = at !== undefined && behind > 0 && { since: at - behind };
  return { ...facts, ...since, reasons: reasons.map(inWords), notes: notes.map(inWords) };
}

function inWords(reason: StatusReasonFacts): StatusReason {
  const { code, queue, type, owner, since, until } = reason;
  return {
    ...{ code, message: reasonText(reason), remedy: remedyOf(reason) },
    ...(queue !== undefined && { queue }),
    ...(type !== undefined && { type }),
    ...(owner !== undefined && { owner }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

/** The remedy in a sentence or two; the same text for reasons that have the same one. */
function remedyOf(reason: StatusReasonFacts): string {
  switch (reason.code) {
    case "EMPTY":
      return "Restore its data, or check the URL and the number of its database. If it is on purpose: put a task, or restart the nodes.";
    case "NO_NODE":
      return "Start one: nothing is lost that the catch-up policies keep.";
    case "NODES_NOT_READY":
      return "See carillon nodes, and /ready and the log of each node.";
    case "CLOCK_WENT_BACK":
      return "It ends by itself at that time. Keep the clock of that host in step by slewing, not by stepping.";
    case "FROZEN":
      return `To lift it now: carillon unfreeze ${reason.frozen.id}`;
    case "QUEUE_PAUSED":
      return `Resume it: carillon queue resume ${reason.queue}`;
    case "NO_WORKER":
      if (!("gap" in reason))
        return `Give the type ${reason.type} to all workers of the queue ${reason.queue}, stop those that lack it, or delete the tasks of that type.`;
      return reason.gap.workers === 0
        ? `Start a worker of the queue ${reason.gap.queue}.`
        : `Give the type ${reason.gap.type} to all workers of the queue ${reason.gap.queue}.`;
    case "JOBS_NOT_TAKEN":
      return `Restart the workers of the queue ${reason.queue}, and see their logs: their connection to Redis may hang.`;
    case "ALERTS_UNDELIVERED":
      return reason.gap
        ? "Start a worker with alertWebhook or alertEmail."
        : "Workers deliver, but not these: their receiver may be slow. See carillon alerts, and the logs of the workers.";
    case "ALERTS_FAIL":
      return "See carillon alerts. Once the receiver works, carillon alerts test URL proves it.";
    case "TASK_HELD":
      return `If no move is under way, one was interrupted. Repeat it: carillon move ${reason.task} ${reason.to}`;
    case "OVERDUE":
      return "While a backlog is drained, this shrinks by itself. If it grows: carillon list --overdue, carillon doctor, and the logs of the nodes.";
    case "JOBS_WAIT":
      return "If runs hang: carillon runs --longest, then carillon cancel RUN, or cancel --all --owner OWNER. If they only take long: more workers, or a higher concurrency.";
    default:
      return reason.hint ?? "See the log of Redis.";
  }
}
