import { isAlive, type NodeInfo, nodeView, VERSION, type WorkerInfo } from "@carillon/store";
import { type Finding, NAMED, type Severity, span } from "./doctor-finding.js";

/** Clock offset in ms from which a node's logs mislead. */
const CLOCK = 1_000;

/** Faults of one Redis server. @param info its reply to INFO */
export function redisFindings(info: string): Finding[] {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1];
  const number = (name: string) => Number(field(name) ?? 0);
  const found: Finding[] = [];
  const add = (severity: Severity, code: string, message: string, remedy: string) =>
    found.push({ code, severity, message, remedy });
  if (field("aof_enabled") === "0")
    add(
      "error",
      "AOF_OFF",
      "Redis has aof_enabled:0: a restart loses acknowledged writes.",
      "Set appendonly yes.",
    );
  for (const name of ["aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status"]) {
    if (field(name) === "err")
      add("error", "PERSISTENCE_FAILS", `Redis has ${name}:err.`, "Check its disk and its log.");
  }
  const policy = field("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction")
    add(
      "error",
      "EVICTION",
      `Redis has maxmemory_policy:${policy}: it may drop tasks and jobs.`,
      "Set maxmemory-policy noeviction.",
    );
  const [used, most] = [number("used_memory"), number("maxmemory")];
  if (most > 0 && used > 0.8 * most)
    add(
      used > most ? "error" : "warning",
      "MEMORY",
      `Redis uses ${Math.round((100 * used) / most)}% of its maxmemory; at 100% it refuses writes.`,
      "Raise maxmemory, or keep fewer runs: retention.",
    );
  for (const [, name, state] of info.matchAll(/^(slave\d+):.*state=(\w+)/gm)) {
    if (state !== "online")
      add(
        "warning",
        "REPLICA",
        `The replica ${name} is in state ${state}.`,
        "Check the replica and its link.",
      );
  }
  if (field("role") === "slave")
    add("error", "REPLICA", "This Redis is a replica: it refuses writes.", "Connect to the master.");
  return found;
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
