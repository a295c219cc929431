import {
  isAlive,
  type NodeInfo,
  nodeView,
  type ServerInfo,
  type SlowCommand,
  VERSION,
  type WorkerInfo,
} from "@carillon/store";
import { type Finding, NAMED, type Severity, span } from "./doctor-finding.js";

/** Clock offset in ms from which a node's logs mislead. */
const CLOCK = 1_000;

/** Usual round trip in ms from which Redis is slow, and the duration of one command. */
const SLOW = { roundTrip: 100, command: 1_000 };
/** Age in ms up to which a slow command counts. */
const RECENT = 600_000;

/** Faults of one Redis server. */
export function redisFindings({ aof, eviction, failing, memory, role, replicas }: ServerInfo): Finding[] {
  const found: Finding[] = [];
  const add = (severity: Severity, code: string, message: string, remedy: string) =>
    found.push({ code, severity, message, remedy });
  const unknown = [
    ...(aof === undefined ? ["whether AOF is on"] : []),
    ...(eviction === undefined ? ["maxmemory-policy"] : []),
  ];
  if (unknown.length > 0)
    add(
      "warning",
      "UNKNOWN_SETTINGS",
      `Redis does not show ${unknown.join(" and ")}.`,
      "Check with its provider: appendonly yes, maxmemory-policy noeviction. Without them it may lose tasks.",
    );
  if (aof === false)
    add(
      "error",
      "AOF_OFF",
      "Redis has aof_enabled:0: a restart loses acknowledged writes.",
      "Set appendonly yes.",
    );
  for (const name of failing)
    add("error", "PERSISTENCE_FAILS", `Redis has ${name}:err.`, "Check its disk and its log.");
  if (eviction !== undefined && eviction !== "noeviction")
    add(
      "error",
      "EVICTION",
      `Redis has maxmemory_policy:${eviction}: it may drop tasks and jobs.`,
      "Set maxmemory-policy noeviction.",
    );
  const { used, most } = memory;
  if (most > 0 && used > 0.8 * most)
    add(
      used > most ? "error" : "warning",
      "MEMORY",
      `Redis uses ${Math.round((100 * used) / most)}% of its maxmemory; at 100% it refuses writes.`,
      "Raise maxmemory, or keep fewer runs: retention.",
    );
  for (const { name, state } of replicas) {
    if (state !== "online")
      add(
        "warning",
        "REPLICA",
        `The replica ${name} is in state ${state}.`,
        "Check the replica and its link.",
      );
  }
  if (role === "slave")
    add("error", "REPLICA", "This Redis is a replica: it refuses writes.", "Connect to the master.");
  return found;
}

/** A Redis that answers slowly, to all nodes or to some, and the command that held it longest. */
export function slowness(
  nodes: readonly NodeInfo[],
  commands: readonly SlowCommand[],
  now: number,
): Finding[] {
  const trips = nodes.flatMap(({ id, host, roundTrip: ms }) => (ms === undefined ? [] : [{ id, host, ms }]));
  const nearest = Math.min(...trips.map(({ ms }) => ms));
  const slow = trips.filter(({ ms }) => ms > SLOW.roundTrip);
  const recent = commands.filter(({ at, tookMs }) => now - at < RECENT && tookMs >= SLOW.command);
  const worst = recent.sort((a, b) => b.tookMs - a.tookMs)[0];
  const held =
    worst &&
    `${worst.command} of ${worst.client} held it for ${span(worst.tookMs)}, ${span(Math.max(0, now - worst.at))} ago`;
  const found = (message: string, remedy: string): Finding[] => [
    { code: "SLOW_REDIS", severity: "warning", message, remedy },
  ];
  const remedy = held
    ? "That client must not send this command to a Redis that schedules."
    : "See the CPU, the swap and SLOWLOG of Redis, and the network to it.";
  if (slow.length > 0 && nearest > SLOW.roundTrip)
    return found(
      `Redis takes ${span(nearest)} to answer the nearest node, so that each claim is late${held ? `; ${held}` : ""}.`,
      remedy,
    );
  if (held) return found(`Redis stood still: ${held}.`, remedy);
  const [first] = slow;
  if (!first) return [];
  return found(
    `Redis takes ${span(first.ms)} to answer the node ${first.id} on ${first.host}, and ${span(nearest)} to answer the nearest.`,
    "See the network between them, and the load of that host.",
  );
}

/** Writes that Redis lost under nodes that are alive, as the first of them noticed it. */
export function lostHistory(nodes: readonly NodeInfo[], now: number): Finding[] {
  const lost = nodes.flatMap((node) => node.lost ?? []).sort((a, b) => (a.to ?? 0) - (b.to ?? 0))[0];
  if (!lost) return [];
  const when = `${span(Math.max(0, now - lost.at))} ago`;
  return [
    {
      code: "HISTORY_LOST",
      severity: "warning",
      message:
        lost.to === undefined
          ? `Redis came back empty ${when}.`
          : `Redis went back to an older state ${when}: it has lost what was written in the ${span(Math.max(0, lost.at - lost.to))} before.`,
      remedy:
        "See its log for why it restarted or failed over, and its settings: appendonly yes. Occurrences of the lost time may run again.",
    },
  ];
}

/** Processes that run different versions; during a rolling deploy that is as it should be. */
export function skews(nodes: readonly NodeInfo[], workers: readonly WorkerInfo[]): Finding[] {
  const versions = {
    VERSION_SKEW: [
      "Carillon",
      [...nodes.map(({ version }) => version), ...workers.map(({ versions }) => versions.carillon), VERSION],
    ],
    BULLMQ_SKEW: [
      "BullMQ",
      [...nodes.map(({ bullmq }) => bullmq), ...workers.map(({ versions }) => versions.bullmq)],
    ],
    TZDATA_SKEW: ["time zone data", nodes.map(({ tzdata }) => tzdata)],
  } as const;
  return Object.entries(versions).flatMap(([code, [what, all]]) => {
    const different = [...new Set(all)].sort();
    if (different.length < 2) return [];
    const message = `Processes that are alive have different versions of ${what}: ${different.join(", ")}.`;
    return [
      {
        code,
        severity: "warning" as const,
        message,
        remedy: "Finish the deploy, so that all have the newest.",
      },
    ];
  });
}

export function clocks(nodes: readonly NodeInfo[]): Finding[] {
  return nodes
    .filter(({ clockOffset }) => Math.abs(clockOffset) > CLOCK)
    .map(({ id, clockOffset }) => ({
      code: "CLOCK",
      severity: "warning" as const,
      message: `The clock of node ${id} is ${span(Math.abs(clockOffset))} ${clockOffset > 0 ? "ahead of" : "behind"} Redis.`,
      remedy: "Synchronise the clocks of that host and of Redis (NTP).",
    }));
}

/** Processes that did not leave their list. */
export function dead(
  what: "node" | "worker",
  all: readonly Pick<NodeInfo, "id" | "host" | "beat" | "every">[],
  now: number,
): Finding[] {
  const gone = all.filter((one) => !isAlive(one, now));
  if (gone.length === 0) return [];
  const some = gone.slice(0, NAMED).map(({ id, host, beat }) => `${id} on ${host} (${span(now - beat)} ago)`);
  const more = gone.length > NAMED ? ` and ${gone.length - NAMED} more` : "";
  return [
    {
      code: what === "node" ? "NODE_DEAD" : "WORKER_DEAD",
      severity: "warning",
      message: `Last heard of, and not stopped in good order: ${what} ${some.join(", ")}${more}.`,
      remedy: `It was killed, or is frozen or cut off: see its host. It is listed for an hour: carillon ${what}s.`,
    },
  ];
}

/** Nodes that do not claim while others do. If none does, the status says so. */
export function notReady(nodes: readonly NodeInfo[], now: number): Finding[] {
  const views = nodes.map((node) => nodeView(node, now));
  if (!views.some(({ ready }) => ready)) return [];
  return views
    .filter(({ ready }) => !ready)
    .map(({ id, host, why = "no reason given" }) => ({
      code: "NODE_NOT_READY",
      severity: "warning" as const,
      message: `The node ${id} on ${host} does not claim: ${why.replace(/\.$/, "")}.`,
      remedy: "See its log. The other nodes do its work meanwhile.",
    }));
}
