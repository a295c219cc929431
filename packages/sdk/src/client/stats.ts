import {
  type AlertKind,
  OUTCOMES,
  type Outcome,
  type Run,
  type TaskName,
  type TaskState,
} from "@carillon/core";
import { FAILURES, SUCCESSES } from "@carillon/core/internal";
import { decodeOutcomes, usualMsOf } from "@carillon/store";

/** A task's statistics. Times in UTC ms, durations in ms. */
export interface TaskStats {
  /** Total of runs: the sum of `outcomes`, plus queued and running ones. */
  readonly runs: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** Runs that are not final. */
  readonly open: number;
  /** succeeded, partial and nothing-to-do. */
  readonly successes: number;
  /** failed, timed-out, crashed and lost. */
  readonly failures: number;
  /** Successes among successes and failures, 0 to 1; undefined: there are none. */
  readonly successRate: number | undefined;
  /** Attempts that were started, and those whose worker died (an attempt under way is not among them). */
  readonly attempts: number;
  readonly crashes: number;
  readonly consecutiveFailures: number;
  readonly consecutiveCrashes: number;
  /** The start of the last run that did something; kept when it fails. */
  readonly lastStart: number | undefined;
  /** The end of `lastRun`. */
  readonly lastFinish: number | undefined;
  /** The end of the last run that succeeded. */
  readonly lastSuccess: number | undefined;
  /** The last run that had nothing to do. */
  readonly lastChecked: number | undefined;
  /** Outcome of `lastRun`. */
  readonly lastOutcome: Outcome | undefined;
  /** The last run that is over and did something: not one that was dropped, cancelled before it started, or had nothing to do. */
  readonly lastRun: string | undefined;
  /** Milliseconds from the start of `lastRun` to its end; undefined: it never started. */
  readonly lastMs: number | undefined;
  /**
   * Delay with which `lastRun` was enqueued, and its wait for a worker, in ms; undefined: not known, or its
   * record is gone.
   */
  readonly lastLateMs: number | undefined;
  readonly lastWaitMs: number | undefined;
  /** The usual duration: mean of the runs that succeeded, in ms; undefined: there are none. */
  readonly usualMs: number | undefined;
  /** Kinds of alerts that were raised since the last run that went well: they are not raised again until one does. */
  readonly incidents: readonly AlertKind[];
  /** Milliseconds of all runs that succeeded, and of all that failed. */
  readonly successMs: number;
  readonly failureMs: number;
}

/** A task with its statistics. */
export interface TaskStatsRow extends TaskStats {
  readonly task: TaskName;
  readonly state: TaskState;
  /** UTC ms; undefined while paused or finished, or while the next time is not known. */
  readonly nextExecution: number | undefined;
}

/** A page of statistics. */
export interface StatsPage {
  readonly tasks: readonly TaskStatsRow[];
  /** The start of the next page; undefined: this was the last. */
  readonly cursor: string | undefined;
}

/**
 * @param running attempts that are under way: each is counted as a crash until its end
 * @param last the delays of the last run
 */
export function statsView(
  stored: Record<string, string>,
  open: number,
  running: number,
  last: Pick<Run, "lateMs" | "waitMs"> = {},
): TaskStats {
  const number = (field: string) => Number(stored[field] ?? 0);
  const time = (field: string) => (stored[field] ? Number(stored[field]) : undefined);
  const outcomes = decodeOutcomes(stored);
  const sum = (...of: Outcome[]) => of.reduce((total, outcome) => total + outcomes[outcome], 0);
  const [successes, failures] = [sum(...SUCCESSES), sum(...FAILURES)];
  return {
    runs: sum(...OUTCOMES) + open,
    outcomes,
    open,
    successes,
    failures,
    successRate: successes + failures > 0 ? successes / (successes + failures) : undefined,
    attempts: number("attempts"),
    crashes: Math.max(0, number("crashes") - running),
    consecutiveFailures: number("consecutiveFailures"),
    consecutiveCrashes: Math.max(0, number("consecutiveCrashes") - running),
    lastStart: time("lastStart"),
    lastFinish: time("lastFinish"),
    lastSuccess: time("lastSuccess"),
    lastChecked: time("lastChecked"),
    lastOutcome: stored.lastOutcome as Outcome | undefined,
    lastRun: stored.lastRun,
    lastMs: time("lastMs"),
    lastLateMs: last.lateMs,
    lastWaitMs: last.waitMs,
    usualMs: usualMsOf(stored),
    incidents: (stored.incidents?.split(" ") ?? []) as AlertKind[],
    successMs: number("successMs"),
    failureMs: number("failureMs"),
  };
}
