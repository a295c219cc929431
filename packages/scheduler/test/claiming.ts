import { shardOf } from "@carillon/core/internal";
import type { Lease, NodeInfo } from "@carillon/store";
import { SILENT } from "../../../test/helpers.js";
import { type Bench, START } from "../../store/test/bench.js";
import { Preparer } from "../src/burst/preparer.js";
import { Claimer } from "../src/claim/claimer.js";
import { type ClaimReport, Committer, emptyReport } from "../src/claim/committer.js";
import { Decider } from "../src/claim/decider.js";
import { ServerClock } from "../src/loop/server-clock.js";
import { type SchedulerOptions, settle } from "../src/options.js";

/** A mutex without competitors. */
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

/** A node's registry entry; its last heartbeat was at the epoch. */
export function nodeInfo(id: string, more: Partial<NodeInfo> = {}): NodeInfo {
  const running = { id, host: "h", pid: 1, version: "1", started: 0, beat: 0, every: 10_000, ready: true };
  return { ...running, tzdata: "x", bullmq: "6.0.0", clockOffset: 0, ...more };
}

/** The parts of a node that claim. */
export interface Claims {
  readonly clock: ServerClock;
  readonly preparer: Preparer;
  /** Claims the prepared tasks of a queue's shard `SHARD`, then its due tasks, as the loop does. */
  claim(queue: string, goOn?: () => boolean, lease?: Lease): Promise<ClaimReport>;
}

/**
 * Builds these parts at the bench's start time.
 * @param monotonic the node's clock
 */
export function claimsOn(
  { store }: Pick<Bench, "store">,
  monotonic?: () => number,
  options: Pick<SchedulerOptions, "grace" | "logger"> = {},
): Claims {
  const clock = new ServerClock(monotonic, Number.POSITIVE_INFINITY);
  clock.observe(START, clock.mark());
  const settings = settle({ store, nodeId: "n1", logger: SILENT, ...options });
  const decider = new Decider(store, settings);
  const committer = new Committer(clock, settings);
  const claimer = new Claimer(store, clock, settings, decider, committer);
  const preparer = new Preparer(store, clock, settings, decider, committer);
  return {
    clock,
    preparer,
    async claim(queue, goOn = () => true, lease = LEASE) {
      const report = emptyReport();
      if (await preparer.commit(queue, SHARD, lease, goOn, report)) {
        await claimer.claim(queue, new Map([[String(SHARD), lease]]), goOn, report);
      }
      return report;
    },
  };
}
