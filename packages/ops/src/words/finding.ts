import {
  countText,
  duration,
  formatDuration,
  formatInstant,
  gapText,
  ownerLimitText,
  reasonText,
  sameIdText,
  sentence,
  settingText,
  silenceText,
} from "@carillon/core/internal";
import type { Finding } from "../health/finding.js";
import { remedyText } from "./status.js";
import type { Voice } from "./voice.js";

/** A fault that the doctor found, and its remedy. */
export function findingText(finding: Finding, voice: Voice): { message: string; remedy: string } {
  const [message, remedy] = textsOf(finding, voice);
  const { task, more, code } = finding;
  const name = task === undefined || OWN_NAME.has(code) ? "" : `${task.owner}/${task.id}: `;
  const others = more === undefined ? "" : ` (So do ${more} others.)`;
  return { message: `${name}${task === undefined ? sentence(message) : message}${others}`, remedy };
}

/** Findings whose sentence names the task itself. */
const OWN_NAME = new Set<Finding["code"]>(["UNREADABLE", "SAME_ID_ELSEWHERE"]);

function textsOf(finding: Finding, voice: Voice): readonly [message: string, remedy: string] {
  const cli = voice.surface === "cli";
  const name = finding.task === undefined ? "" : `${finding.task.owner}/${finding.task.id}`;
  switch (finding.code) {
    case "UNKNOWN_SETTINGS":
      return [
        settingText(finding),
        "Check with its provider: appendonly yes, maxmemory-policy noeviction. Without them it may lose tasks.",
      ];
    case "PERSISTENCE_FAILS":
      return [`Redis has ${finding.field}:err.`, "Check its disk and its log."];
    case "MEMORY":
      return [
        `Redis uses ${Math.round((100 * finding.used) / finding.most)}% of its maxmemory; at 100% it refuses writes.`,
        "Raise maxmemory, or keep fewer runs: retention.",
      ];
    case "REPLICA":
      return finding.replica
        ? [
            finding.replica.state === "online"
              ? `The replica ${finding.replica.name} has not answered for ${finding.replica.lag} s.`
              : `The replica ${finding.replica.name} is in state ${finding.replica.state}.`,
            "Check the replica and its link. With min-replicas-to-write Redis refuses writes from min-replicas-max-lag on, 10 s by default.",
          ]
        : ["This Redis is a replica: it refuses writes.", "Connect to the master."];
    case "SLOW_REDIS":
      return slowText(finding);
    case "HISTORY_LOST":
      return [
        finding.lostMs === undefined
          ? `Redis came back empty ${duration(finding.agoMs)} ago.`
          : `Redis went back to an older state ${duration(finding.agoMs)} ago: it has lost what was written in the ${duration(finding.lostMs)} before.`,
        "See its log for why it restarted or failed over, and its settings: appendonly yes. Occurrences of the lost time may run again.",
      ];
    case "VERSION_SKEW":
    case "BULLMQ_SKEW":
    case "TZDATA_SKEW":
      return [
        `Processes that are alive have different versions of ${SKEWED[finding.code]}: ${finding.versions.join(", ")}.`,
        `Finish the deploy, so that all have the newest.${cli ? " Which these are: carillon nodes, carillon workers." : ""}`,
      ];
    case "CLOCK":
      return [
        `The clock of node ${finding.node} is ${duration(finding.aheadMs)} ${finding.aheadMs > 0 ? "ahead of" : "behind"} Redis.`,
        "Synchronise the clocks of that host and of Redis (NTP).",
      ];
    case "NODE_DEAD":
    case "WORKER_DEAD": {
      const what = finding.code === "NODE_DEAD" ? "node" : "worker";
      const some = finding.processes.map(
        ({ id, host, agoMs }) => `${id} on ${host} (${duration(agoMs)} ago)`,
      );
      const others = finding.others > 0 ? ` and ${finding.others} more` : "";
      return [
        `Last heard of, and not stopped in good order: ${what} ${some.join(", ")}${others}.`,
        `It was killed, or is frozen or cut off: see its host. It is listed for an hour: ${cli ? `carillon ${what}s` : "the page System"}.`,
      ];
    }
    case "NODE_NOT_READY":
      return [
        `The node ${finding.node.id} on ${finding.node.host} does not claim: ${(silenceText(finding) ?? "no reason given").replace(/\.$/, "")}.`,
        "See its log. The other nodes do its work meanwhile.",
      ];
    case "TYPE_UNHANDLED":
      return [`${gapText(finding.gap)}.`, startText(finding.gap)];
    case "NO_DELIVERER": {
      const { carrier, deliverer, gap } = finding;
      return [
        `${alertsOf(finding)} by ${carrier === "mail" ? "e-mail" : "webhook"}, and ${gapText(gap)}.`,
        `Give a worker ${deliverer}().`,
      ];
    }
    case "ALERT_FORMAT":
      return [
        `${alertsOf(finding)} to ${finding.host} in the format ${finding.format}, which it refuses.`,
        `Put them again with format: "${finding.instead}".`,
      ];
    case "NOT_PLANNED":
      return [
        `Its schedule cannot be computed, so it does not run: ${finding.error}`,
        `Mend the schedule${cli ? `: carillon edit ${name}` : ""}. If a node can compute it, this program has older time zone data.`,
      ];
    case "SAME_ID_ELSEWHERE":
      return [
        sameIdText(name, finding.queues),
        `If a queue was renamed: delete the old one${cli ? ` (carillon rm ${name} --queue QUEUE)` : ""}. Tasks that belong to different queues on purpose are easier to tell apart with different ids.`,
      ];
    case "NEVER_RAN": {
      const { task, limit } = finding;
      const held = task && limit !== undefined ? `: ${ownerLimitText(task.owner, limit)}` : "";
      return [
        `It was put ${duration(finding.agoMs)} ago, its times have passed, and it never ran${held}.`,
        !cli
          ? "Its page explains each time."
          : held === ""
            ? `Why: carillon explain ${name}`
            : `To raise the limit: carillon queues limit ${finding.queue} ${task?.owner} RUNS`,
      ];
    }
    case "RUN_TOO_LONG": {
      const { tookMs, everyMs, run } = finding;
      const fix = "Give it a longer interval or a time limit, or make the run shorter.";
      const hangs = cli ? `If it hangs: carillon cancel ${run}.` : "If it hangs, cancel it on its page.";
      return [
        `Its ${run === undefined ? "last run took" : "present run has taken"} ${duration(tookMs)}, and it is due every ${duration(everyMs)}.`,
        run === undefined ? fix : `${hangs} ${fix}`,
      ];
    }
    case "HERD": {
      const { count, read, queue, at, perSecond } = finding;
      const spread = formatDuration(Math.ceil(count / perSecond) * 1_000);
      const minute = formatInstant(Math.floor(at / 60_000) * 60_000);
      return [
        `${count} of the ${read} tasks read of queue ${queue} are due at ${voice.time(at)}.`,
        `A jitter of ${spread} in their schedules makes ${perSecond} a second of them${cli ? `: carillon spread ${minute} ${spread} --queue ${queue}` : "."}`,
      ];
    }
    case "UNREADABLE":
      return [finding.text, finding.hint ?? ""];
    case "ORPHAN":
      return [
        `${finding.count} names in the indexes of queue ${finding.queue} have no definition: ${finding.names.join(", ")}.`,
        "A node removes them once a day; if they come back, check what else writes to this Redis.",
      ];
    default:
      return [reasonText(finding, voice.time), remedyText(finding, voice)];
  }
}

/** Names the tasks, or the defaults, that have the alerts of a finding. */
function alertsOf({ tasks, scopes }: { readonly tasks: number; readonly scopes: readonly string[] }): string {
  const who = [
    ...(tasks > 0 ? [countText(tasks, "task")] : []),
    ...(scopes.length > 0 ? [`the defaults of ${scopes.join(", ")}`] : []),
  ];
  return `${who.join(" and ")} ${tasks === 1 && scopes.length === 0 ? "has" : "have"} alerts`;
}

const SKEWED = { VERSION_SKEW: "Carillon", BULLMQ_SKEW: "BullMQ", TZDATA_SKEW: "time zone data" } as const;

function slowText({
  nearest = 0,
  far,
  held,
}: Extract<Finding, { code: "SLOW_REDIS" }>): readonly [string, string] {
  const by =
    held &&
    (held.ours
      ? `one of Carillon's scripts took ${duration(held.tookMs)}, ${duration(held.agoMs)} ago`
      : `${held.command} of ${held.client} held it for ${duration(held.tookMs)}, ${duration(held.agoMs)} ago`);
  if (far)
    return [
      `Redis takes ${duration(far.ms)} to answer the node ${far.id} on ${far.host}, and ${duration(nearest)} to answer the nearest.`,
      "See the network between them, and the load of that host.",
    ];
  const remedy = !held
    ? "See the CPU, the swap and SLOWLOG of Redis, and the network to it."
    : held.ours
      ? "See the CPU and the swap of that host."
      : "That client must not send this command to a Redis that schedules.";
  if (nearest === 0) return [`Redis stood still: ${by}.`, remedy];
  const late = `Redis takes ${duration(nearest)} to answer the nearest node, so that each claim is late`;
  return [`${late}${by ? `; ${by}` : ""}.`, remedy];
}

function startText({ type, queue }: { readonly type: string; readonly queue: string }): string {
  return `Start a worker that has the type ${type} and works the queue ${queue}.`;
}
