import { shardOf } from "@carillon/core";
import type { Lease, NodeInfo } from "@carillon/store";
import { type Bench, START } from "../../store/test/bench.js";
import { Claimer } from "../src/claimer.js";
import { type SchedulerOptions, settle } from "../src/options.js";
import { ServerClock } from "../src/server-clock.js";

export const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
/** A mutex that nobody else wants. */
export const LEASE: Lease = {
  remaining: Number.POSITIVE_INFINITY,
  extend: async () => {},
  release: async () => {},
};
/** The shard of the task `t`. */
export const SHARD = shardOf("system/t");

/** Ids of tasks that are all in that shard. */
export function idsOf(count: number): string[] {
  const ids: string[] = [];
  for (let i = 0; ids.length < count; i++) if (shardOf(`system/p${i}`) === SHARD) ids.push(`p${i}`);
  return ids;
}

/** What a node says of itself; its last heartbeat was at the epoch. */
export function nodeInfo(id: string, more: Partial<NodeInfo> = {}): NodeInfo {
  const running = { id, host: "h", pid: 1, version: "1", started: 0, beat: 0, every: 10_000 };
  return { ...running, tzdata: "x", clockOffset: 0, ...more };
}

/** What of a node claims, at the bench's first time. @param monotonic its clock */
export function claimerOn(
  { store }: Bench,
  monotonic?: () => number,
  options: Pick<SchedulerOptions, "grace"> = {},
): { clock: ServerClock; claimer: Claimer } {
  const clock = new ServerClock(monotonic, Number.POSITIVE_INFINITY);
  clock.observe(START, clock.mark());
  return {
    clock,
    claimer: new Claimer(store, clock, settle({ store, nodeId: "n1", logger: SILENT, ...options })),
  };
}
