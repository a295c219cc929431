import type { Trigger } from "./job.js";
import type { CatchUpPolicy, OverlapPolicy } from "./task.js";
import type { Slot, TaskSchedule } from "./task-schedule.js";

/** A lone occurrence later than this is missed, where catch-up is `skip`. Milliseconds. */
export const DEFAULT_GRACE = 60_000;

export type SkipReason = "overlap" | "missed" | "paused" | "excluded" | "superseded";

/** What a claim knows of a due task. Times in UTC ms of Redis time. */
export interface DueTask {
  readonly nominal: number;
  readonly due: number;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly schedule: TaskSchedule;
  /** How many occurrences of the schedule were enqueued before. */
  readonly fired: number;
  /** Whether an earlier run's job is not finished, by the job's own state. */
  readonly running: boolean;
}

/** Consecutive nominal times that were passed over, both ends included. */
export interface Skipped {
  readonly reason: SkipReason;
  readonly from: number;
  readonly to: number;
}

/** What a task waits for next: a time, or the end of the run that is being enqueued and a delay (ms) after it. */
export type Next = Slot | { readonly afterFinish: number };

/**
 * What becomes of a due task: at most one occurrence is enqueued; everything else between the old cursor and the
 * new one is skipped with its reason.
 */
export interface Decision {
  readonly enqueue?: Slot & { trigger: Trigger; missed?: { from: number; to: number } };
  readonly skipped: readonly Skipped[];
  /** The last nominal time that is now decided. */
  readonly cursor: number;
  /** Undefined: the task is finished. */
  readonly next: Next | undefined;
}

/**
 * The claim's decision, pure: the same task at the same time is decided alike on every node.
 *
 * A backlog exists when the time after the due one has come as well. `all` walks it one by one, `one`
 * enqueues its latest time, `skip` none of it (nor a lone one that is later than the grace).
 */
export function decide(task: DueTask, now: number, grace: number = DEFAULT_GRACE): Decision {
  const { schedule, nominal, due } = task;
  if (schedule.delay !== undefined) return decideDelayed(task, schedule.delay, now, grace);
  const following = schedule.slotAfter(nominal);
  const backlog = following !== undefined && following.due <= now;

  if (task.catchUp === "skip" && (backlog || now - due > grace)) {
    const last = backlog ? (schedule.latestDue(now) ?? nominal) : nominal;
    return passOver({ reason: "missed", from: nominal, to: last }, schedule);
  }
  if (!backlog || task.catchUp === "all") {
    const trigger = backlog ? "catch-up" : "schedule";
    return settleOverlap(task, { nominal, due, trigger }, [], following);
  }

  const latest = Math.max(schedule.latestDue(now) ?? nominal, nominal);
  const before = schedule.latest(latest - 1) ?? nominal;
  const missed = { from: nominal, to: before };
  const skipped: Skipped[] = [{ reason: "missed", ...missed }];
  const enqueue = { nominal: latest, due: schedule.due(latest), trigger: "catch-up" as const, missed };
  return settleOverlap(task, enqueue, skipped, schedule.slotAfter(latest));
}

/** A fixed delay after finish: there is never more than one time at once, and the next one follows this run's end. */
function decideDelayed(task: DueTask, delay: number, now: number, grace: number): Decision {
  const { schedule, nominal, due } = task;
  const allowed = schedule.next(nominal - delay);
  if (allowed === undefined) return { skipped: [], cursor: nominal, next: undefined };
  if (allowed !== nominal) {
    const excluded: Skipped = { reason: "excluded", from: nominal, to: nominal };
    return { skipped: [excluded], cursor: nominal, next: { nominal: allowed, due: allowed } };
  }
  if (task.catchUp === "skip" && now - due > grace) {
    const missed: Skipped = { reason: "missed", from: nominal, to: nominal };
    return { skipped: [missed], cursor: nominal, next: schedule.slotAfter(now) };
  }
  if (forbidden(task.overlap, task.running)) {
    const overlap: Skipped = { reason: "overlap", from: nominal, to: nominal };
    return { skipped: [overlap], cursor: nominal, next: schedule.slotAfter(now) };
  }
  return enqueued(task, { nominal, due, trigger: "schedule" }, [], { afterFinish: delay });
}

function settleOverlap(
  task: DueTask,
  enqueue: NonNullable<Decision["enqueue"]>,
  skipped: Skipped[],
  next: Slot | undefined,
): Decision {
  if (!forbidden(task.overlap, task.running)) return enqueued(task, enqueue, skipped, next);
  const overlap: Skipped = { reason: "overlap", from: enqueue.nominal, to: enqueue.nominal };
  return { skipped: [...skipped, overlap], cursor: enqueue.nominal, next };
}

function enqueued(
  task: DueTask,
  enqueue: NonNullable<Decision["enqueue"]>,
  skipped: Skipped[],
  next: Next | undefined,
): Decision {
  const last = task.schedule.spent(task.fired + 1);
  return { enqueue, skipped, cursor: enqueue.nominal, next: last ? undefined : next };
}

function passOver(skipped: Skipped, schedule: TaskSchedule): Decision {
  return { skipped: [skipped], cursor: skipped.to, next: schedule.slotAfter(skipped.to) };
}

/** May an occurrence not start beside a run that is not final? */
export function forbidden(overlap: OverlapPolicy, running: boolean): boolean {
  return running && overlap !== "allow";
}

/**
 * Where a schedule starts when nothing is owed: a new task, an edited schedule, a resume "from now". Strictly
 * after both the last decided time and now. Undefined: nothing is left, of its times or of its `maxRuns`.
 */
export function firstNext(
  schedule: TaskSchedule,
  from: { cursor?: number | undefined; fired?: number | undefined },
  now: number,
): Slot | undefined {
  return schedule.spent(from.fired ?? 0) ? undefined : schedule.slotAfter(Math.max(from.cursor ?? now, now));
}

/**
 * The next time of a task whose schedule means something else than when it was planned: a calendar that it names or the
 * time zone data has changed. What is owed stays owed, from its first time that still holds.
 */
export function replan(
  schedule: TaskSchedule,
  from: { nominal?: number | undefined; cursor?: number | undefined; fired: number },
  now: number,
): Slot | undefined {
  const owed = from.nominal !== undefined && from.nominal <= now;
  if (!owed) return firstNext(schedule, from, now);
  return schedule.spent(from.fired) ? undefined : schedule.slotAfter((from.nominal as number) - 1);
}
