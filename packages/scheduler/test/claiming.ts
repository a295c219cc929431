import { shardOf } from "@carillon/core/internal";
import type { Lease } from "@carillon/store";
import { SILENT } from "../../../test/helpers.js";
import { type Bench, START } from "../../store/test/bench.js";
import { Claimer } from "../src/claim/claimer.js";
import { type ClaimReport, Committer, emptyReport } from "../src/claim/committer.js";
import { Decider } from "../src/claim/decider.js";
import { Agenda } from "../src/loop/agenda.js";
import { ServerClock } from "../src/loop/server-clock.js";
import { checked, type SchedulerOptions } from "../src/options.js";
import type { Part } from "../src/part.js";

/** A mutex without competitors. */
export const LEASE: Lease = {
  remaining: Number.POSITIVE_INFINITY,
  extend: async () => true,
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

/** The parts of a node that claim. */
export interface Claims {
  readonly clock: ServerClock;
  readonly claimer: Claimer;
  /** Reads the due tasks of the shard `SHARD`, or of these, that come due within `ahead` ms. */
  prepare(queue: string, ahead: number, shards?: number[]): Promise<void>;
  /** Claims what is due in that shard, as the loop does. */
  claim(queue: string, goOn?: () => boolean): Promise<ClaimReport & { left: Part[] }>;
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
  const settings = checked({ store, nodeId: "n1", logger: SILENT, ...options });
  const agenda = new Agenda();
  const decider = new Decider(store, settings);
  const committer = new Committer(store, clock, settings);
  const claimer = new Claimer(store, clock, settings, agenda, decider, committer);
  const turn = async (queue: string, goOn: () => boolean, ahead: number, shards = [SHARD]) => {
    const report = emptyReport();
    agenda.set(queue, await store.claims.next(queue));
    const left = await claimer.claim(queue, new Set(shards.map(String)), goOn, report, ahead);
    return { ...report, left };
  };
  return {
    clock,
    claimer,
    prepare: async (queue, ahead, shards) => void (await turn(queue, () => true, ahead, shards)),
    claim: (queue, goOn = () => true) => turn(queue, goOn, 0),
  };
}
