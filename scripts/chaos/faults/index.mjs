import { clockFaults, redisClockFaults } from "./clocks.mjs";
import { clusterFaults } from "./cluster.mjs";
import { deployFault } from "./deploy.mjs";
import { cutFaults, networkFaults } from "./network.mjs";
import { nodeFaults, pointFaults } from "./nodes.mjs";
import { redisFaults } from "./redis.mjs";
import { sentinelFaults } from "./sentinel.mjs";
import { workerFaults } from "./workers.mjs";

/**
 * All faults. `scope`: node, worker or Redis (one of these at a time). `topologies`: those in which it can happen
 * (default: all). `needs`: requirements (`clock`, `redisClock`). `ends`: its process dies. `once`: at most once a run.
 * `last`: at the end of a run. `waits`: an order that waits until its target reaches the point. `beside`: the target
 * may have another fault meanwhile. `run` resolves with whether the fault was effective: it hit a claim, a settle or a
 * reconcile halfway, or commands failed. That is decided from evidence, never assumed.
 */
const FAULTS = [
  ...nodeFaults,
  ...pointFaults,
  ...clockFaults,
  ...networkFaults,
  ...cutFaults,
  ...redisFaults,
  ...redisClockFaults,
  ...clusterFaults,
  ...sentinelFaults,
  ...workerFaults,
  deployFault,
];

/**
 * Faults that a run can have. `missing`: kinds whose requirements are not met.
 * @param {{ topology: string, only: string[], has: Record<string, boolean> }} run
 */
export function availableFaults({ topology, only, has }) {
  const wanted = FAULTS.filter(
    ({ kind, topologies }) =>
      (only.length === 0 || only.includes(kind)) && (topologies ?? [topology]).includes(topology),
  );
  const lacks = ({ needs }) => needs !== undefined && !has[needs];
  return {
    faults: wanted.filter((fault) => !lacks(fault)),
    missing: [...new Set(wanted.filter(lacks).map(({ kind }) => kind))],
  };
}

/**
 * Faults that are measured alone: the worst death of a node for the others (with a mutex, and nothing claimed), and a
 * restart of Redis.
 */
export function probesAmong(faults) {
  const dies = ({ kind, point }) =>
    kind === "dies at a point" && (point === "after lock" || point === "before commit");
  return faults.filter((fault) => dies(fault) || fault.kind === "Redis kill -9 and restart");
}

export const KINDS = [...new Set(FAULTS.map(({ kind }) => kind))];
