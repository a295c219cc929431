import type { Decision, DueTask, Enqueue } from "./decision.js";
import type { Json } from "./json.js";
import { counted, forbidden, type OverlapAnswer, overlapAnswer, skip } from "./overlap.js";
import type { OverlapPolicy } from "./policies.js";
import type { TaskSchedule } from "./task-schedule.js";

/** Consecutive nominal times, both ends included, UTC ms. */
export type TimeRange = readonly [from: number, to: number];

/** A walk through past occurrences. Times in UTC ms. */
export interface BackfillWalk {
  readonly id: string;
  /** The nominal time of the last step. */
  readonly at: number;
  /** The last nominal time that may be enqueued. */
  readonly to: number;
  /** Only times in these ranges, both ends included, in order. Default: all. */
  readonly ranges?: readonly TimeRange[] | undefined;
  readonly overlap: OverlapPolicy;
  /** The name of the requester. */
  readonly by?: string | undefined;
}

export interface ReplayedRun {
  readonly key: string;
  readonly nominal: number;
  /** Its id, if its payload was not the task's. */
  readonly payloadOf?: string;
}

/** The next nominal time of a walk. Undefined: none is left. */
export function nextStep(
  schedule: Pick<TaskSchedule, "next">,
  { at, to, ranges = [[at + 1, to]] }: Pick<BackfillWalk, "at" | "to" | "ranges">,
): number | undefined {
  for (const [first, last] of ranges) {
    if (last <= at) continue;
    const nominal = schedule.next(Math.max(at, first - 1));
    if (nominal === undefined || nominal > to) return undefined;
    if (nominal <= last) return nominal;
  }
  return undefined;
}

/**
 * The next step of a backfill: one past occurrence, under the backfill's overlap policy. A decision that neither
 * enqueues nor skips waits for the run that blocks it. Undefined if no time is left, or `maxRuns` is used up.
 */
export function decideStep(
  task: DueTask,
  walk: BackfillWalk,
): { nominal: number; decision: Decision } | undefined {
  const { schedule, pending } = task;
  const taken = task.fired + counted(pending);
  const nominal = nextStep(schedule, walk);
  if (nominal === undefined || schedule.spent(taken)) return undefined;
  const kept = { skipped: [], next: "kept", pending } as const;
  const key = `${task.keyOf(nominal)}/${walk.id}`;
  const by = walk.by ? { by: walk.by } : {};
  const enqueue: Enqueue = { key, nominal, due: nominal, trigger: "backfill", ...by };
  const last = task.slot !== undefined && schedule.spent(taken + 1);
  const decisions: Record<OverlapAnswer, Decision> = {
    start: { ...kept, enqueue, next: last ? undefined : "kept" },
    skip: { ...kept, skipped: [skip("overlap", enqueue)] },
    wait: kept,
    cancel: { ...kept, cancel: true },
  };
  return { nominal, decision: decisions[overlapAnswer(walk.overlap, task.running)] };
}

/**
 * The next step of a replay: the occurrence of a run again, which counts towards no `maxRuns`. It waits for a run in its way.
 *
 * @param index the run's place in the replay
 * @param payload `own` undefined: the task's; `gone`: it was deleted, so the run is passed over
 */
export function decideReplay(
  task: Pick<DueTask, "overlap" | "running" | "pending">,
  { key, nominal }: ReplayedRun,
  asked: { id: string; index: number; by: string; payload: { own: Json | undefined } | "gone" },
): Decision {
  const { id, index, by, payload } = asked;
  const kept: Decision = { skipped: [], next: "kept", pending: task.pending };
  if (payload === "gone" || forbidden(task.overlap, task.running)) return kept;
  const enqueue: Enqueue = {
    key: `${originOf(key)}/${id}.${index}`,
    ...{ nominal, due: nominal, trigger: "backfill" },
    ...(by && { by }),
    ...(payload.own !== undefined && { payload: payload.own }),
  };
  return { ...kept, enqueue, uncounted: true };
}

/** The key of the occurrence that a backfill or a replay ran again; other keys are returned as they are. */
export function originOf(key: string): string {
  return key.replace(/(\/[0-9a-z]{13}(\.\d+)?)+$/, "");
}
