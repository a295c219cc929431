import { z } from "zod";
import { CarillonError } from "./errors.js";
import { hashOf } from "./schedule/hash.js";
import { parseDuration } from "./schedule/index.js";

/** What happens to an occurrence while an earlier run of its task is not final. */
export const OVERLAP_POLICIES = ["skip", "allow", "queue-one", "queue-all", "cancel-running"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** @throws `INVALID_OPTION` for a policy that there is not; undefined: none is asked for */
export function assertOverlap(value: OverlapPolicy | undefined): void {
  if (value === undefined || OVERLAP_POLICIES.includes(value)) return;
  throw new CarillonError("INVALID_OPTION", "no such policy.", {
    field: "overlap",
    remedy: `Use one of ${OVERLAP_POLICIES.join(", ")}.`,
  });
}

/** What happens to occurrences that fell due while no node could claim them. */
export const CATCH_UP_POLICIES = ["skip", "one", "all"] as const;
export type CatchUpPolicy = (typeof CATCH_UP_POLICIES)[number];

/** What alerts are about. `missed-deadline`: no run succeeded within `expectWithin`. */
export const ALERT_KINDS = ["failed", "crashed", "paused", "missed-deadline"] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** How a wait grows with each failure in a row: the same, n times, or doubled each time. */
export const BACKOFFS = ["fixed", "linear", "exponential"] as const;
export type Backoff = (typeof BACKOFFS)[number];

/** A policy's own text, checked by the parser that will read it later; the issue carries the parser's code. */
function text(check: (value: string) => void) {
  return z.string().superRefine((value, context) => {
    try {
      check(value);
    } catch (error) {
      if (!(error instanceof CarillonError)) throw error;
      context.addIssue({ code: "custom", message: error.message, params: { code: error.code } });
    }
  });
}

const duration = text((value) => void parseDuration(value));
const percent = /^(\d{1,3})%$/;
const limit = text((value) => void timeLimitOf(value, undefined));

const retrySchema = z.strictObject({
  /** Tries in all; default 3. */
  attempts: z.int().min(1).max(100).default(3),
  /** Default `exponential`. */
  backoff: z.enum(BACKOFFS).default("exponential"),
  /** The first wait; default `1s`. */
  delay: duration.default("1s"),
  /** No wait is longer; default `1h`. */
  max: duration.default("1h"),
});
export type RetryPolicy = z.output<typeof retrySchema>;

const backoffSchema = z.strictObject({
  /** The first wait after a run that failed. */
  period: duration,
  /** Default `exponential`. */
  backoff: z.enum(BACKOFFS).default("exponential"),
  /** No wait is longer; default 5 times the schedule's interval. */
  max: duration.optional(),
  /** Waits differ by at most this part, up or down; whole percent, default 13 (an eighth). */
  jitter: z.int().min(0).max(50).default(13),
});
export type BackoffPolicy = z.output<typeof backoffSchema>;

/** Each policy of a task, beside `overlap` and `catchUp`. Stored only where given. */
export const policySchema = z.strictObject({
  /** `queue-all`: occurrences that may wait; more are skipped. Default 100. */
  maxQueued: z.int().min(1).max(1_000).optional(),
  /** Bounds of `catchUp`: missed times older than `window` and beyond the newest `most` are passed over; with `all`, one each `every`. */
  catchUpLimits: z
    .strictObject({
      window: duration.optional(),
      most: z.int().min(1).max(1_000).optional(),
      every: duration.optional(),
    })
    .optional(),
  /** A run that would start sooner than this after the start of the one before is dropped. */
  minGap: duration.optional(),
  /** How long a run may take: a duration, or a part of the interval (`50%`). */
  timeLimit: limit.optional(),
  /** What a run gets to end by itself after its time limit or a cancel; default `10s`. */
  timeLimitGrace: duration.optional(),
  /** Attempts inside one run. Default: one. */
  retry: retrySchema.optional(),
  /** A new run after one that failed, before the next occurrence. Default: none. */
  backoff: backoffSchema.optional(),
  /** Pause after this many failures in a row. */
  pauseAfterFailures: z.int().min(1).max(1_000_000).optional(),
  /** After an attempt whose worker died: the wait before the next one (default `5m`), and after how many the run is over (default 3). */
  crash: z.strictObject({ wait: duration.optional(), most: z.int().min(1).max(100).optional() }).optional(),
  /** Alert when no run succeeded for so long. */
  expectWithin: duration.optional(),
  /** Final runs that are kept: newest of each kind, and none older. */
  retention: z
    .strictObject({
      /** Default 100. */
      successes: z.int().min(0).max(10_000).optional(),
      /** Default 100. */
      failures: z.int().min(0).max(10_000).optional(),
      /** Default `7d`. */
      successesFor: duration.optional(),
      /** Default `30d`. */
      failuresFor: duration.optional(),
    })
    .optional(),
  /** How long a finished task stays; default `30d`. */
  linger: duration.optional(),
  /** Signed webhooks. */
  alerts: z
    .array(
      z.strictObject({
        on: z.array(z.enum(ALERT_KINDS)).min(1),
        url: z.url({ protocol: /^https?$/ }).max(2_048),
      }),
    )
    .max(8)
    .optional(),
});
export type Policies = {
  readonly [K in keyof z.output<typeof policySchema>]: z.output<typeof policySchema>[K];
};

/**
 * A time limit in ms: a duration, or a part of the gap to the following occurrence.
 * @param gap ms; undefined: there is no following one, and a part of it is no limit
 * @throws `INVALID_DURATION`
 */
export function timeLimitOf(limit: string, gap: number | undefined): number | undefined {
  const part = percent.exec(limit)?.[1];
  if (part === undefined) return parseDuration(limit);
  if (Number(part) >= 1 && Number(part) <= 100) {
    return gap === undefined ? undefined : Math.max(1, Math.floor((gap * Number(part)) / 100));
  }
  throw new CarillonError("INVALID_DURATION", `${limit} is not a part of the interval.`, {
    remedy: "Give 1% to 100%, or a duration such as 30s.",
  });
}

/** The wait after the n-th failure in a row (from 1), in ms: before cap and jitter. */
export function backoffWait(kind: Backoff, period: number, n: number): number {
  if (kind === "fixed") return period;
  if (kind === "linear") return period * n;
  return period * 2 ** Math.min(n - 1, 52);
}

/** What a policy asks after a run that ended badly. */
export interface AfterFailure {
  /** Start again this many ms after the end; undefined: no retry, the next occurrence goes on. */
  readonly retryIn: number | undefined;
  /** Pause the task. */
  readonly pause: boolean;
}

/**
 * After the n-th failure in a row (from 1). The wait is capped (default 5 intervals) and then jittered, both as TimescaleDB
 * documents it; whether the next occurrence comes first is the caller's to see.
 *
 * @param interval of the schedule in ms; undefined: unknown, and there is no default cap
 * @param seed what the jitter is derived from, the same for ever
 */
export function afterFailure(
  policies: Policies,
  failures: number,
  interval: number | undefined,
  seed: string,
): AfterFailure {
  const { backoff, pauseAfterFailures } = policies;
  if (pauseAfterFailures !== undefined && failures >= pauseAfterFailures) {
    return { retryIn: undefined, pause: true };
  }
  if (backoff === undefined) return { retryIn: undefined, pause: false };
  const most =
    backoff.max === undefined ? 5 * (interval ?? Number.POSITIVE_INFINITY) : parseDuration(backoff.max);
  const wait = Math.min(backoffWait(backoff.backoff, parseDuration(backoff.period), failures), most);
  const spread = ((hashOf(seed) / 0x1_0000_0000) * 2 - 1) * (backoff.jitter / 100);
  return { retryIn: Math.max(1, Math.round(wait * (1 + spread))), pause: false };
}
