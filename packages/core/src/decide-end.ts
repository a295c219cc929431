import type { Pending } from "./decision.js";
import { tokenOf } from "./ids.js";
import { ASKED_FOR } from "./job.js";
import type { Policies } from "./policies.js";
import { afterFailure } from "./retry.js";
import { isFailure, type Outcome } from "./run.js";
import type { TaskSchedule } from "./task-schedule.js";

export interface EndingTask {
  readonly policies: Pick<Policies, "rerun" | "pauseAfterFailures">;
  /** Compiled only if a decision needs it: it may name a calendar that is missing. */
  readonly schedule: () => TaskSchedule;
  /** Time at which the schedule's next occurrence is claimed, UTC ms. Undefined if the schedule has none, or the task is paused. */
  readonly due: number | undefined;
  readonly pending: readonly Pending[];
  /** Failures in a row before this end. */
  readonly failures: number;
}

export interface EndingRun extends Omit<Pending, "at" | "overlap" | "payload"> {
  readonly id: string;
  readonly outcome: Outcome;
  /** Time at which its handler asks to run again, UTC ms. */
  readonly nextAt: number | undefined;
}

/** Changes that the end of a run makes to its task. */
export interface EndDecision {
  /** All pending occurrences from now on; undefined if unchanged. */
  readonly pending: readonly Pending[] | undefined;
  /** Note with which the task is paused. */
  readonly pause: string | undefined;
  /** The retry's nominal time, if the next occurrence takes its place, and the nominal time before it. */
  readonly superseded: { readonly nominal: number; readonly before: number | undefined } | undefined;
  /** Time that a handler requested earlier, if this run's request replaces it. */
  readonly replaced: number | undefined;
}

/**
 * Decides what follows from the end of a run: a retry, a pause, a run at a time that the handler requested. Undefined
 * if nothing does, and the end does not depend on the task.
 *
 * @param now when the run ends, UTC ms of Redis time
 */
export function decideEnd(task: EndingTask, run: EndingRun, now: number): EndDecision | undefined {
  const failed = isFailure(run.outcome);
  const { pending, replaced } = withWish(task, run);
  const { retry, pause, superseded } =
    failed && !ASKED_FOR.has(run.trigger) ? decideFailure(task, run, now) : NOTHING;
  // Runs that fail at the same time must count each other: one of them may reach the limit.
  const counts = failed && task.policies.pauseAfterFailures !== undefined;
  // Also set if another run asked for the same time: with a fixed delay, that time replaces the next one.
  const waits = run.nextAt !== undefined || retry !== undefined;
  if (!waits && pause === undefined && superseded === undefined && !counts) return undefined;
  return {
    pending: waits ? [...pending, ...(retry ? [retry] : [])] : undefined,
    pause,
    superseded,
    replaced,
  };
}

/** Adds the time that a handler requested. A task has at most one: the last request counts. */
function withWish(
  { pending }: EndingTask,
  { key, id, nextAt }: EndingRun,
): { pending: readonly Pending[]; replaced: number | undefined } {
  const asked = pending.find(({ trigger }) => trigger === "self");
  if (nextAt === undefined || asked?.nominal === nextAt) return { pending, replaced: undefined };
  const wish: Pending = {
    // The run is part of the key: another run may ask for the same time once it has passed.
    key: `${key.replace(/@.*$/, "")}@self-${nextAt}.${tokenOf(id)}`,
    nominal: nextAt,
    due: nextAt,
    trigger: "self",
    at: nextAt,
  };
  return { pending: [...pending.filter((one) => one !== asked), wish], replaced: asked?.nominal };
}

interface AfterEnd extends Pick<EndDecision, "pause" | "superseded"> {
  readonly retry: Pending | undefined;
}

const NOTHING: AfterEnd = { retry: undefined, pause: undefined, superseded: undefined };

function decideFailure(task: EndingTask, run: EndingRun, now: number): AfterEnd {
  const { key, nominal, due, missed, by, trace } = run;
  const failures = task.failures + 1;
  const interval = () => {
    const schedule = task.schedule();
    if (schedule.delay !== undefined) return schedule.delay;
    const following = schedule.next(nominal);
    return following === undefined ? undefined : following - nominal;
  };
  const wish = afterFailure(task.policies, failures, interval, `${key}\n${failures}`);
  if (wish.pause) return { ...NOTHING, pause: `paused after ${failures} failures in a row` };
  if (wish.retryIn === undefined) return NOTHING;
  const at = now + wish.retryIn;
  // The next occurrence does the work of a retry that would not come before it.
  if (task.due !== undefined && at >= task.due)
    return { ...NOTHING, superseded: { nominal, before: task.schedule().latest(nominal - 1) } };
  const more = { ...(missed && { missed }), ...(by && { by }), ...(trace && { trace }) };
  return { ...NOTHING, retry: { key, nominal, due, trigger: "retry", at, ...more } };
}
