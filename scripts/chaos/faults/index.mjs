import { clockFaults, redisClockFaults } from "./clocks.mjs";
import { clusterFaults } from "./cluster.mjs";
import { deployFault } from "./deploy.mjs";
import { cutFaults, networkFaults } from "./network.mjs";
import { nodeFaults, pointFaults } from "./nodes.mjs";
import { redisFaults } from "./redis.mjs";
import { sentinelFaults } from "./sentinel.mjs";
import { workerFaults } from "./workers.mjs";

/**
 * What can happen. `scope`: to a node, a worker, or Redis (one of these at a time). `topologies`: where it can (default: all).
 * `needs`: what must be there (`clock`, `redisClock`, `proxy`). `once`: at most once a run. `last`: at the end of a run. `waits`: an order that waits until its
 * target comes by. `beside`: the target may have another one meanwhile. `run` resolves with whether it was effective: that it hit a claim, a settle or a reconcile half way, or that
 * commands failed; from evidence, never assumed.
 */
export const FAULTS = [
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

export const KINDS = [...new Set(FAULTS.map(({ kind }) => kind))];
