import {
  isAlive,
  type NodeInfo,
  nodeView,
  type ServerInfo,
  type SlowCommand,
  unsafeSettings,
  VERSION,
  type WorkerInfo,
} from "@carillon/store";
import { type Finding, NAMED } from "./finding.js";

/** Clock offset in ms from which a node's logs mislead. */
const CLOCK = 1_000;

/** Usual round trip in ms from which Redis is slow, and the duration of one command. */
const SLOW = { roundTrip: 100, command: 1_000 };
/** Age in ms up to which a slow command counts. For our own scripts less: a host that was busy once needs no action. */
const RECENT = { foreign: 600_000, ours: 60_000 };
/** Time in s without an answer of a replica, which answers each second: half of the default of min-replicas-max-lag. */
const LAG = 5;

export function redisFindings(info: ServerInfo): Finding[] {
  const { failing, memory, role, replicas } = info;
  const { used, most } = memory;
  const full = most > 0 && used > 0.8 * most;
  return [
    ...unsafeSettings(info).map(
      (one): Finding => ({ ...one, severity: one.code === "UNKNOWN_SETTINGS" ? "warning" : "error" }),
    ),
    ...failing.map((field): Finding => ({ code: "PERSISTENCE_FAILS", severity: "error", field })),
    ...(full ? [{ code: "MEMORY", severity: used > most ? "error" : "warning", used, most } as const] : []),
    ...replicas
      .filter(({ state, lag }) => state !== "online" || lag >= LAG)
      .map((replica): Finding => ({ code: "REPLICA", severity: "warning", replica })),
    ...(role === "slave" ? [{ code: "REPLICA", severity: "error" } as const] : []),
  ];
}

/** A Redis that answers slowly, to all nodes or to some, and the command that held it longest. */
export function slowness(
  nodes: readonly NodeInfo[],
  commands: readonly SlowCommand[],
  now: number,
): Finding[] {
  const trips = nodes.flatMap(({ id, host, roundTrip: ms }) => (ms === undefined ? [] : [{ id, host, ms }]));
  const nearest = Math.min(...trips.map(({ ms }) => ms));
  const far = trips.find(({ ms }) => ms > SLOW.roundTrip);
  const recent = commands.filter(
    ({ at, tookMs, ours }) => now - at < (ours ? RECENT.ours : RECENT.foreign) && tookMs >= SLOW.command,
  );
  const worst = recent.sort((a, b) => b.tookMs - a.tookMs)[0];
  if (!far && !worst) return [];
  const held = worst && { held: { ...worst, agoMs: Math.max(0, now - worst.at) } };
  const facts = far && nearest > SLOW.roundTrip ? { nearest, ...held } : (held ?? { nearest, far });
  return [{ code: "SLOW_REDIS", severity: "warning", ...facts }];
}

/** Writes that Redis lost under nodes that are alive, as the first of them noticed it. */
export function lostHistory(nodes: readonly NodeInfo[], now: number): Finding[] {
  const lost = nodes.flatMap((node) => node.lost ?? []).sort((a, b) => (a.to ?? 0) - (b.to ?? 0))[0];
  if (!lost) return [];
  const { at, to } = lost;
  const lostMs = to === undefined ? {} : { lostMs: Math.max(0, at - to) };
  return [{ code: "HISTORY_LOST", severity: "warning", agoMs: Math.max(0, now - at), ...lostMs }];
}

/** Processes that run different versions; during a rolling deploy that is as it should be. */
export function skews(nodes: readonly NodeInfo[], workers: readonly WorkerInfo[]): Finding[] {
  const ours = [...nodes.map(({ version }) => version), ...workers.map(({ versions }) => versions.carillon)];
  const bull = [...nodes.map(({ bullmq }) => bullmq), ...workers.map(({ versions }) => versions.bullmq)];
  const found = [
    ["VERSION_SKEW", [...ours, VERSION]],
    ["BULLMQ_SKEW", bull],
    ["TZDATA_SKEW", nodes.map(({ tzdata }) => tzdata)],
  ] as const;
  return found.flatMap(([code, all]) => {
    const versions = [...new Set(all)].sort();
    return versions.length < 2 ? [] : [{ code, severity: "warning", versions }];
  });
}

export function clocks(nodes: readonly NodeInfo[]): Finding[] {
  return nodes
    .filter(({ clockOffset }) => Math.abs(clockOffset) > CLOCK)
    .map(({ id, clockOffset }) => ({ code: "CLOCK", severity: "warning", node: id, aheadMs: clockOffset }));
}

/** Processes that did not leave their list. */
export function dead(
  code: "NODE_DEAD" | "WORKER_DEAD",
  all: readonly Pick<NodeInfo, "id" | "host" | "beat" | "every">[],
  now: number,
): Finding[] {
  const gone = all.filter((one) => !isAlive(one, now));
  if (gone.length === 0) return [];
  const processes = gone.slice(0, NAMED).map(({ id, host, beat }) => ({ id, host, agoMs: now - beat }));
  return [{ code, severity: "warning", processes, others: gone.length - processes.length }];
}

/** Nodes that do not claim while others do. If none does, the status says so. */
export function notReady(nodes: readonly NodeInfo[], now: number): Finding[] {
  const views = nodes.map((node) => nodeView(node, now));
  if (!views.some(({ ready }) => ready)) return [];
  return views
    .filter(({ ready }) => !ready)
    .map(({ id, host, why, silentMs }) => ({
      code: "NODE_NOT_READY",
      severity: "warning",
      node: { id, host },
      why,
      silentMs,
    }));
}
