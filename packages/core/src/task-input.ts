import type { AlertTargetInput } from "./destinations/index.js";
import type { AlertKind, Backoff, CatchUpPolicy, OverlapPolicy } from "./policies.js";
import type { ScheduleInput } from "./schedule/input.js";
import type { Duration } from "./schedule/text/duration.js";

/**
 * A task as callers write it: only `id`, `type`, `queue` and `schedule` are required. Durations are text with units, `"90s"`,
 * or whole milliseconds.
 */
export interface TaskInput extends PoliciesInput {
  /** The task's name among those of its queue and owner: 1 to 128 letters, digits, `.`, `_` and `-`. */
  id: string;
  /** The name of the task type whose handler does the work. */
  type: string;
  /** The queue that its jobs go to. */
  queue: string;
  /** Times of its runs: one of `cron`, `calendar`, `every`, `at`, `manual` and `any`. */
  schedule: ScheduleInput;
  /** Input of the handler: plain JSON, at most 262,144 bytes. Default: `{}`. */
  payload?: unknown;
  /** Owner of the task; ids are unique for each owner. Default: `"system"`, or the owner that the client is bound to. */
  owner?: string | undefined;
  /** Words to find tasks by, at most 32; each with the characters of an id. Default: none. */
  tags?: string[] | undefined;
  /** `false`: a new task starts paused. A put never pauses or resumes an existing one. Default: `true`. */
  enabled?: boolean | undefined;
  /**
   * `"shadow"`: the schedule of a new task is decided and recorded, but enqueues nothing, until `carillon cutover` or a resume with
   * `mode: "live"`. A put never changes the mode of an existing one. Default: live.
   */
  mode?: "shadow" | undefined;
  /** BullMQ's priority: 0 is the most urgent, then 1, 2, … to 2,097,152. Default: 0. */
  priority?: number | undefined;
  /** Rule for an occurrence that is due while an earlier run is not over. Default: `"skip"`. */
  overlap?: OverlapPolicy | undefined;
  /** Rule for occurrences that no node could claim in time. Default: `"one"`, the newest. */
  catchUp?: CatchUpPolicy | undefined;
  /** Text for people, at most 1,024 characters. Default: none. */
  description?: string | undefined;
  /** Person or thing that the work is about, for the handler: at most 256 characters. Default: none. */
  subject?: string | undefined;
  /** Name of the person or program that asked for it, for the handler: at most 256 characters. Default: none. */
  submitter?: string | undefined;
  /** Group that it belongs to, for the handler: at most 256 characters. Default: none. */
  group?: string | undefined;
}

/** The policies of a task besides `overlap` and `catchUp`. */
export interface PoliciesInput {
  /** With `overlap: "queue-all"`: most occurrences that may wait, 1 to 1,000; further ones are skipped. Default: 100. */
  maxQueued?: number | undefined;
  /** Bounds of `catchUp`. Default: none. */
  catchUpLimits?: CatchUpLimitsInput | undefined;
  /** Least time between the starts of two runs; a run that would start sooner is dropped. Default: none. */
  minGap?: Duration | undefined;
  /**
   * Instead of `minGap`: a run that would start sooner than one interval after the start of the run before is dropped,
   * unless it is early by no more than this. Follows the schedule when that changes. Default: none.
   */
  tolerance?: Duration | undefined;
  /** Time limit of an attempt: a duration, or a part of the interval, `"50%"`. Default: no limit. */
  timeLimit?: Duration | undefined;
  /** The time that a run then has to end by itself, also after a cancel. Default: `"10s"`. */
  timeLimitGrace?: Duration | undefined;
  /** Attempts inside one run. Default: one attempt. */
  retry?: RetryInput | undefined;
  /** A new run after one that failed, before the next occurrence. Default: none. */
  rerun?: RerunInput | undefined;
  /** The task is paused after this many consecutive failures, 1 to 1,000,000. Default: never. */
  pauseAfterFailures?: number | undefined;
  /** Rule for the time after an attempt whose worker died. */
  crash?: CrashInput | undefined;
  /** Thresholds that raise an alert. Default: none. */
  alertIf?: AlertIfInput | undefined;
  /** Final runs that are kept. */
  retention?: RetentionInput | undefined;
  /** Time for which a finished task stays. Default: `"30d"`. */
  linger?: Duration | undefined;
  /** Webhooks, e-mail addresses and services that get alerts, at most 8. Default: none. */
  alerts?: AlertInput[] | undefined;
}

/** Age, number and rate of the occurrences that a task catches up on. */
export interface CatchUpLimitsInput {
  /** Missed times that are older than this are skipped. Default: no limit. */
  window?: Duration | undefined;
  /** Only this many of the newest missed times are kept, 1 to 1,000. Default: all. */
  max?: number | undefined;
  /** With `catchUp: "all"`: least time between two missed occurrences that are enqueued. Default: none. */
  every?: Duration | undefined;
}

/** Attempts inside one run. */
export interface RetryInput {
  /** Attempts in all, 1 to 100. Default: 3. */
  attempts?: number | undefined;
  /** Growth of the wait: `"fixed"`, `"linear"`, `"exponential"`. Default: `"exponential"`. */
  backoff?: Backoff | undefined;
  /** The first wait. Default: `"1s"`. */
  delay?: Duration | undefined;
  /** No wait is longer. Default: `"1h"`. */
  max?: Duration | undefined;
}

/** New runs after a run that failed. */
export interface RerunInput {
  /** The wait after the first failure. */
  delay: Duration;
  /** Growth of the wait: `"fixed"`, `"linear"`, `"exponential"`. Default: `"exponential"`. */
  backoff?: Backoff | undefined;
  /** No wait is longer. Default: 5 times the schedule's interval. */
  max?: Duration | undefined;
  /** Waits vary by at most this part, up or down: whole percent, 0 to 50. Default: 13. */
  jitter?: number | undefined;
}

/** Rule for the time after attempts whose worker died. */
export interface CrashInput {
  /** The wait before the next attempt. Default: `"5m"`. */
  delay?: Duration | undefined;
  /** The run ends as crashed after this many such attempts, 1 to 100. Default: 3. */
  attempts?: number | undefined;
}

/** Thresholds that raise an alert; one that is left out raises none. */
export interface AlertIfInput {
  /** No run succeeded for this long. Default: never. */
  noSuccessFor?: Duration | undefined;
  /** A run has not started this long after it was due. Default: never. */
  notStartedFor?: Duration | undefined;
  /**
   * A run takes longer than this: a duration, or a part of the usual duration, `"300%"`. The usual one is the mean of
   * the runs that succeeded, from the fifth on. Default: never.
   */
  slowerThan?: Duration | undefined;
  /**
   * This many decisions in a row skipped an occurrence, as `overlap`, `behind` or `missed`: 1 to 1,000,000.
   * Default: never.
   */
  skipsInARow?: number | undefined;
}

/** Final runs that are kept: the newest of each kind, and none older. */
export interface RetentionInput {
  /** Successful runs, 0 to 10,000. Default: 100. */
  successes?: number | undefined;
  /** Failed runs, 0 to 10,000. Default: 100. */
  failures?: number | undefined;
  /** Time for which successful runs are kept. Default: `"7d"`. */
  successesFor?: Duration | undefined;
  /** Time for which failed runs are kept. Default: `"30d"`. */
  failuresFor?: Duration | undefined;
}

/**
 * A webhook, `{ url }`, an e-mail address, `{ email }`, or a service by its `format`: `{ format: "slack", url }`,
 * `{ format: "teams", url }`, `{ format: "pagerduty", routingKey }`. URLs of webhooks and routing keys are secrets: whoever reads the task gets
 * placeholders, and a put that holds them keeps the stored values.
 */
export type AlertInput = AlertTargetInput & {
  /**
   * Events that it reports, at least one: `"failed"`, `"crashed"`, `"paused"`, `"missed-deadline"`, `"late-start"`,
   * `"slow"`, `"skipped"`, `"recovered"`; in the defaults of all tasks also `"no-worker"` and `"stopped"`.
   */
  on: AlertKind[];
  /**
   * Alerts of a minute that it gets one by one, 0 to 10,000; the others are collected, by kind and cause, in a digest. Default: 3, and for an
   * e-mail address 0, so that a mail has all of a minute.
   */
  perMinute?: number | undefined;
  /** At most 8 times in which it gets nothing; then it gets the alerts of the whole time at once. Default: none. */
  quiet?: QuietInput[] | undefined;
};

/** A recurring quiet time of a destination. */
export interface QuietInput {
  /** Its begins: a `cron` or `calendar` expression, with `timezone`. */
  schedule: ScheduleInput;
  /** Its length. */
  for: Duration;
}
