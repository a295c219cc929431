import { z } from "zod";
import { targetSchema } from "./destinations/index.js";
import { CarillonError } from "./errors.js";
import { assertOneOf } from "./options.js";
import { reviewSchedule, type Schedule, scheduleSchema } from "./schedule/index.js";
import { DURATION } from "./schedule/kinds/expression.js";
import { type Duration, durationText, parseDuration } from "./schedule/text/duration.js";

/** Rules for an occurrence that is due while an earlier run of its task is not final. */
export const OVERLAP_POLICIES = ["skip", "allow", "queue-one", "queue-all", "cancel-running"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** Accepts undefined, which means no override. @throws `INVALID_OPTION` for an unknown policy */
export function assertOverlap(value: OverlapPolicy | undefined): void {
  assertOneOf(value, "overlap", OVERLAP_POLICIES);
}

/** Rules for occurrences that came due while no node could claim them. */
export const CATCH_UP_POLICIES = ["skip", "one", "all"] as const;
export type CatchUpPolicy = (typeof CATCH_UP_POLICIES)[number];

/**
 * Kinds of alerts. `missed-deadline`: no run succeeded for `alertIf.noSuccessFor`; `late-start`, `slow` and
 * `skipped`: beyond `notStartedFor`, `slowerThan` and `skipsInARow`; `recovered`: a run went well after another alert. Of the
 * whole namespace: `no-worker` and `stopped`.
 */
export const ALERT_KINDS = [
  ...(["failed", "crashed", "paused", "missed-deadline", "late-start", "slow", "skipped"] as const),
  ...(["recovered", "no-worker", "stopped"] as const),
] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

/** Growth of the wait with consecutive failures: it stays the same, is multiplied by their number, or doubles each time. */
export const BACKOFFS = ["fixed", "linear", "exponential"] as const;
export type Backoff = (typeof BACKOFFS)[number];

/**
 * Schema of a policy's duration, checked by the parser that reads it later; the issue carries the parser's code. Stored
 * as text.
 */
function duration(check: (value: Duration) => void) {
  return DURATION.transform((value, context): string => {
    try {
      check(value);
      return durationText(value);
    } catch (error) {
      if (!(error instanceof CarillonError)) throw error;
      context.addIssue({ code: "custom", message: error.message, params: { code: error.code } });
      return z.NEVER;
    }
  });
}

const span = duration((value) => void parseDuration(value));
const percent = /^(\d{1,3})%$/;
const limit = duration((value) => void timeLimitOf(value, undefined));
const slow = duration((value) => void slowerThanOf(value));

const retrySchema = z.strictObject({
  attempts: z.int().min(1).max(100).default(3),
  backoff: z.enum(BACKOFFS).default("exponential"),
  delay: span.default("1s"),
  max: span.default("1h"),
});
export type RetryPolicy = z.output<typeof retrySchema>;

const rerunSchema = z.strictObject({
  delay: span,
  backoff: z.enum(BACKOFFS).default("exponential"),
  max: span.optional(),
  jitter: z.int().min(0).max(50).default(13),
});
export type RerunPolicy = z.output<typeof rerunSchema>;

/** Schedules whose times begin a quiet time. */
const WINDOWS = [
  (schedule: object) =>
    Object.keys(schedule).every((field) => ["cron", "calendar", "timezone"].includes(field)) &&
    reviewSchedule(schedule as Schedule).never === undefined,
  "is not a cron or calendar expression with a timezone that names any time",
] as const;

/** Policies of a task besides `overlap` and `catchUp`. Stored only if given. */
export const policySchema = z.strictObject({
  maxQueued: z.int().min(1).max(1_000).optional(),
  catchUpLimits: z
    .strictObject({
      window: span.optional(),
      max: z.int().min(1).max(1_000).optional(),
      every: span.optional(),
    })
    .optional(),
  minGap: span.optional(),
  tolerance: span.optional(),
  timeLimit: limit.optional(),
  timeLimitGrace: span.optional(),
  retry: retrySchema.optional(),
  rerun: rerunSchema.optional(),
  pauseAfterFailures: z.int().min(1).max(1_000_000).optional(),
  crash: z.strictObject({ delay: span.optional(), attempts: z.int().min(1).max(100).optional() }).optional(),
  alertIf: z
    .strictObject({
      noSuccessFor: span.optional(),
      notStartedFor: span.optional(),
      slowerThan: slow.optional(),
      skipsInARow: z.int().min(1).max(1_000_000).optional(),
    })
    .optional(),
  retention: z
    .strictObject({
      successes: z.int().min(0).max(10_000).optional(),
      failures: z.int().min(0).max(10_000).optional(),
      successesFor: span.optional(),
      failuresFor: span.optional(),
    })
    .optional(),
  linger: span.optional(),
  alerts: z
    .array(
      targetSchema({
        on: z.array(z.enum(ALERT_KINDS)).min(1),
        perMinute: z.int().min(0).max(10_000).optional(),
        quiet: z
          .array(z.strictObject({ schedule: scheduleSchema.refine(...WINDOWS), for: span }))
          .min(1)
          .max(8)
          .optional(),
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
 * @param gap ms; undefined if there is no following occurrence: a part of the gap is then no limit
 * @throws `INVALID_DURATION`
 */
export function timeLimitOf(limit: Duration, gap: number | undefined): number | undefined {
  const part = percent.exec(String(limit))?.[1];
  if (part === undefined) return parseDuration(limit);
  if (Number(part) >= 1 && Number(part) <= 100)
    return gap === undefined ? undefined : Math.max(1, Math.floor((gap * Number(part)) / 100));
  throw new CarillonError("INVALID_DURATION", `${limit} is not a part of the interval.`, {
    remedy: "Give 1% to 100%, or a duration such as 30s.",
  });
}

/** The duration from which on a run is slow: in ms, or in percent of the usual one. @throws `INVALID_DURATION` */
export function slowerThanOf(slowerThan: Duration): { readonly ms: number } | { readonly percent: number } {
  const part = /^(\d{1,6})%$/.exec(String(slowerThan))?.[1];
  if (part === undefined) return { ms: parseDuration(slowerThan) };
  if (Number(part) > 100) return { percent: Number(part) };
  throw new CarillonError("INVALID_DURATION", `${slowerThan} is not more than the usual duration.`, {
    remedy: "Give more than 100%, such as 300%, or a duration such as 10m.",
  });
}

/**
 * Least time from the start of the run before to that of a scheduled run, in ms; undefined: any.
 * @param interval ms to the following occurrence; undefined if there is none: `tolerance` then asks for nothing
 */
export function minGapOf(
  { minGap, tolerance }: Pick<Policies, "minGap" | "tolerance">,
  interval: number | undefined,
): number | undefined {
  if (minGap !== undefined) return parseDuration(minGap);
  if (tolerance === undefined || interval === undefined) return undefined;
  return Math.max(0, interval - parseDuration(tolerance)) || undefined;
}
