import type { Trigger } from "./job.js";
import type { CompiledSchedule } from "./schedule/types.js";
import type { CatchUpPolicy, OverlapPolicy } from "./task.js";

/** A lone occurrence later than this is missed, where catch-up is `skip`. Milliseconds. */
export const DEFAULT_GRACE = 60_000;

export type SkipReason = "overlap" | "missed" | "paused" | "excluded" | "superseded";

/** What a claim knows of a due task. Times in UTC ms of Redis time. */
export interface DueTask {
  readonly nominal: number;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly schedule: CompiledSchedule;
  /** Whether an earlier run's job is not finished, by the job's own state. */
  readonly running: boolean;
}

/** Consecutive nominal times that were passed over, both ends included. */
export interface Skipped {
  readonly reason: SkipReason;
  readonly from: number;
  readonly to: number;
}

/**
 * What becomes of a due task: at most one occurrence is enqueued; everything else between the old cursor and the
 * new one is skipped with its reason.
 */
export interface Decision {
  readonly enqueue?: { nominal: number; trigger: Trigger; missed?: { from: number; to: number } };
  readonly skipped: readonly Skipped[];
  /** The last nominal time that is now decided. */
  readonly cursor: number;
  /** The next nominal time; undefined: the task is finished. */
  readonly next: number | undefined;
}

/**
 * The claim's decision, pure: the same task at the same time is decided alike on every node.
 *
 * A backlog exists when the time after the due one has passed as well. `all` walks it one by one, `one`
 * enqueues its latest time, `skip` none of it (nor a lone one that is later than the grace).
 */
export function decide(task: DueTask, now: number, grace: number = DEFAULT_GRACE): Decision {
  const { schedule, nominal } = task;
  const following = schedule.next(nominal);
  const backlog = following !== undefined && following <= now;

  if (task.catchUp === "skip" && (backlog || now - nominal > grace)) {
    const last = backlog ? (schedule.latest(now) ?? nominal) : nominal;
    return passOver({ reason: "missed", from: nominal, to: last }, schedule);
  }
  if (!backlog || task.catchUp === "all") {
    return settleOverlap(task, { nominal, trigger: backlog ? "catch-up" : "schedule" }, [], following);
  }

  const latest = Math.max(schedule.latest(now) ?? nominal, nominal);
  const before = schedule.latest(latest - 1) ?? nominal;
  const missed = { from: nominal, to: before };
  const skipped: Skipped[] = [{ reason: "missed", ...missed }];
  return settleOverlap(
    task,
    { nominal: latest, trigger: "catch-up", missed },
    skipped,
    schedule.next(latest),
  );
}

function settleOverlap(
  task: DueTask,
  enqueue: NonNullable<Decision["enqueue"]>,
  skipped: Skipped[],
  next: number | undefined,
): Decision {
  if (!forbidden(task.overlap, task.running)) return { enqueue, skipped, cursor: enqueue.nominal, next };
  const overlap: Skipped = { reason: "overlap", from: enqueue.nominal, to: enqueue.nominal };
  return { skipped: [...skipped, overlap], cursor: enqueue.nominal, next };
}

function passOver(skipped: Skipped, schedule: CompiledSchedule): Decision {
  return { skipped: [skipped], cursor: skipped.to, next: schedule.next(skipped.to) };
}

/** May an occurrence not start beside a run that is not final? */
export function forbidden(overlap: OverlapPolicy, running: boolean): boolean {
  return running && overlap !== "allow";
}

/**
 * Where a schedule starts when nothing is owed: a new task, an edited schedule, a resume "from now". Strictly
 * after both the last decided time and now.
 */
export function firstNext(
  schedule: CompiledSchedule,
  cursor: number | undefined,
  now: number,
): number | undefined {
  return schedule.next(Math.max(cursor ?? now, now));
}
