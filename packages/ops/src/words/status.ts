import { reasonText as factText, type StatusReasonFacts } from "@carillon/core/internal";
import type { Voice } from "./voice.js";

export function reasonText(reason: StatusReasonFacts, { time }: Voice): string {
  return factText(reason, time);
}

const RAISE = {
  runs: "setGlobalConcurrency, removeGlobalConcurrency",
  rate: "the limiter of its workers, or setGlobalRateLimit, removeGlobalRateLimit",
};

/** Remedies of reasons, in a sentence or two; reasons with the same remedy have the same text. */
export function remedyText(reason: StatusReasonFacts, { surface }: Voice): string {
  const cli = surface === "cli";
  switch (reason.code) {
    case "EMPTY":
      return "Restore its data, or check the URL and the number of its database. If it is on purpose: put a task, or restart the nodes.";
    case "NO_NODE":
      return "Start one: nothing is lost that the catch-up policies keep.";
    case "NODES_NOT_READY":
      return `See ${cli ? "carillon nodes" : "the page System"}, and /ready and the log of each node.`;
    case "CLOCK_WENT_BACK":
      return "It ends by itself at that time. Keep the clock of that host in step by slewing, not by stepping.";
    case "AOF_OFF":
      return "Set appendonly yes.";
    case "EVICTION":
      return "Set maxmemory-policy noeviction.";
    case "SAME_NODE_ID":
      return "Give each node an id of its own (nodeId, CARILLON_NODE_ID), or none: records and logs cannot tell these apart.";
    case "SILENCED":
      return cli ? `To end it now: carillon unsilence ${reason.silence.id}` : "End it on the page Held.";
    case "FROZEN":
      return cli ? `To lift it now: carillon unfreeze ${reason.frozen.id}` : "Lift it on the page Held.";
    case "QUEUE_PAUSED":
      return cli ? `Resume it: carillon queues resume ${reason.queue}` : "Resume it on the page Held.";
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
        : `Workers deliver, but not these: their receiver may be slow. See ${alerts(cli)}, and the logs of the workers.`;
    case "RUNS_FAIL":
      return cli
        ? "What fails, whom it hits, and the change before it: carillon journal --failures --group. Until it works, hold it: carillon freeze --queue QUEUE, or carillon freeze --tag TAG."
        : "The page Errors shows what fails, whom it hits, and the change before it. Until it works, freeze the queue, an owner or a tag.";
    case "ALERTS_FAIL":
      return `See ${alerts(cli)}. Once the receiver works, a test ${cli ? "proves it: carillon alerts test URL" : "from that page proves it."}`;
    case "TASK_HELD":
      return `If no move is under way, one was interrupted. Repeat it${cli ? `: carillon move ${reason.held} ${reason.to}` : "."}`;
    case "OVERDUE": {
      const { owner, tasks = 0, read = 0 } = reason.most ?? {};
      const limit =
        cli && tasks < read
          ? ` To limit that owner: carillon queues limit ${reason.queue} ${owner} RUNS`
          : "";
      return `While a backlog is drained, this shrinks by itself. If it grows: ${cli ? "carillon list --overdue, carillon doctor," : "see the overdue tasks, the page System"} and the logs of the nodes.${limit}`;
    }
    case "JOBS_WAIT":
      return `If runs hang: ${cli ? "carillon running, then carillon cancel RUN, or carillon cancel --all --owner OWNER" : "cancel them on the page Runs"}. If they only take long: more workers, or a higher concurrency.`;
    case "JOBS_LIMITED":
      return `If that is not on purpose, raise or remove it: ${RAISE[reason.limit?.holds ?? "rate"]} of BullMQ's Queue.`;
    default:
      return reason.hint ?? "See the log of Redis.";
  }
}

function alerts(cli: boolean): string {
  return cli ? "carillon alerts" : "the alerts in the settings";
}
