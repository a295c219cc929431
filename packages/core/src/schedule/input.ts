import type { Duration } from "./text/duration.js";
import type { Instant } from "./text/instant.js";
import type { CronDialect, DstChoice, ScheduleKind } from "./types.js";

type No<Field extends string> = { [K in Field]?: undefined };
/** Fields that belong to other kinds than this one. */
type NoOther<Own extends ScheduleKind | "named", Field extends string = never> = No<
  Exclude<ScheduleKind, Own> | Field
>;

/**
 * Schedule of a task, as callers write it: exactly one of `cron`, `calendar`, `every`, `at` and `manual`, or a union: `any`.
 * @see docs/schedules.md
 */
export type ScheduleInput = (
  | (CronInput | CalendarInput | EveryInput)
  | (DelayInput | AtInput | ManualInput | UnionInput)
) &
  WholeInput;

/** The fields that every schedule has, besides those of its kind. */
export interface WholeInput {
  /**
   * Longest delay with which an occurrence may become due, to spread tasks: a duration, `"30s"`, or a part of the gap to the
   * following time, `"10%"`. Derived from owner, id and time, so each node computes the same. Default: none.
   */
  jitter?: Duration | undefined;
  /**
   * The task is finished after this many enqueued occurrences, 1 to 1,000,000,000. Skips, retries and triggers do not
   * count. Default: no limit.
   */
  maxRuns?: number | undefined;
}

/** The fields of a schedule, and of each member of a union. */
export interface LimitsInput extends BoundsInput {
  /**
   * Times that are removed: whole days (`{ calendar: "Sat,Sun" }`), single times, or a shared calendar (`{ named:
   * "holidays" }`). Default: none.
   */
  except?: ExclusionInput[] | undefined;
}

/** First and last time. */
export interface BoundsInput {
  /** The first time allowed, inclusive: ISO 8601 with an offset, a `Date`, or epoch milliseconds. Default: no bound. */
  start?: Instant | undefined;
  /** The last time allowed, inclusive, in the same forms. Default: no bound. */
  end?: Instant | undefined;
}

/** By a cron expression. */
export interface CronInput extends LimitsInput, NoOther<"cron", "origin" | "anchor"> {
  /** Five fields, or six with seconds first: `"0 9 * * 1-5"`. `H` is a value of the task's own. */
  cron: string;
  /**
   * Rules by which `cron` is read: `"cron-parser"` for exactly the times at which BullMQ's job schedulers fire. Takes
   * no `dst` and no `H`. Default: cronie's rules.
   */
  dialect?: CronDialect | undefined;
  /** IANA zone, `"Europe/Berlin"`. Default: `"UTC"`. */
  timezone?: string | undefined;
  /** Rule for local times that a clock change skips or repeats. Default: as cron does. */
  dst?: DstChoice | undefined;
}

/** By a systemd OnCalendar expression. */
export interface CalendarInput extends LimitsInput, NoOther<"calendar", "origin" | "anchor" | "dialect"> {
  /** An OnCalendar expression: `"Mon..Fri *-*-* 09:00"`. It may end with a zone. */
  calendar: string;
  /** IANA zone, `"Europe/Berlin"`. Default: `"UTC"`. */
  timezone?: string | undefined;
  /** Rule for local times that a clock change skips or repeats. Default: as systemd does. */
  dst?: DstChoice | undefined;
}

/** A fixed rate. */
export interface EveryInput extends LimitsInput, NoOther<"every", "dst" | "dialect"> {
  /**
   * Text with units, `"10s"`, `"1h30m"`, `"PT5M"`, or whole milliseconds, `10_000`. Or by the calendar: `"1 month"`,
   * `"2 weeks"`, `"P1Y"`.
   */
  every: Duration;
  /** Start of the count of intervals: ISO 8601 with an offset, a `Date`, or epoch milliseconds. Default: the Unix epoch. */
  origin?: Instant | undefined;
  /** IANA zone, for intervals of whole days and longer, which it makes days of the calendar. Default: `"UTC"`. */
  timezone?: string | undefined;
  /** Start of the count of the next time: the `origin`, or with `"finish"` the end of each run. Default: `"origin"`. */
  anchor?: "origin" | undefined;
}

/** A fixed delay after each run. */
export interface DelayInput
  extends LimitsInput,
    NoOther<"every", "origin" | "timezone" | "dst" | "dialect" | "jitter"> {
  /** The delay, of a fixed length: `"10s"`, `"1h30m"`, `"7d"`, or whole milliseconds. */
  every: Duration;
  /** `"finish"`: counted from the end of each run. */
  anchor: "finish";
}

/** Once. */
export interface AtInput
  extends LimitsInput,
    NoOther<"at", "timezone" | "origin" | "dst" | "dialect" | "anchor"> {
  /** ISO 8601 with an offset, `"2026-12-24T18:00:00+01:00"`, a `Date`, or epoch milliseconds. */
  at: Instant;
}

/** Never by itself: the task runs only when it is triggered. Bounds, exclusions, jitter and `maxRuns` are refused. */
export interface ManualInput
  extends LimitsInput,
    NoOther<"manual", "timezone" | "origin" | "dst" | "dialect" | "anchor"> {
  /** The only field. */
  manual: true;
}

/** Each time of any member, once where they coincide. */
export interface UnionInput
  extends LimitsInput,
    NoOther<"any", "timezone" | "origin" | "dst" | "dialect" | "anchor"> {
  /** 1 to 32 schedules, each with one of `cron`, `calendar`, `every` and `at`. */
  any: MemberInput[];
}

/** A member of a union. */
export type MemberInput = (CronInput | CalendarInput | EveryMember | AtInput) & No<keyof WholeInput>;
type EveryMember = Omit<EveryInput, "anchor"> & No<"anchor">;

/** Times that are removed from a schedule: those of one syntax, or of a shared calendar. */
export type ExclusionInput = BoundsInput & No<keyof WholeInput | "anchor"> & ExclusionKind;
type ExclusionKind =
  | (Pick<CronInput, "cron" | "dialect" | "timezone"> & NoOther<"cron", "named" | "origin">)
  | (Pick<CalendarInput, "calendar" | "timezone"> & NoOther<"calendar", "named" | "origin" | "dialect">)
  | (Pick<EveryInput, "every" | "origin" | "timezone"> & NoOther<"every", "named" | "dialect">)
  | (Pick<AtInput, "at"> & NoOther<"at", "named" | "origin" | "timezone" | "dialect">)
  | (NamedInput & NoOther<"named", "origin" | "dialect">);

/** A shared calendar. */
export interface NamedInput {
  /** The calendar's name, as `ops.calendars.put` stored it. */
  named: string;
  /** IANA zone in which its days are read. Default: the schedule's. */
  timezone?: string | undefined;
}
