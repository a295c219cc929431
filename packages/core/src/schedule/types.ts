/**
 * Schedule of a task, as it is stored: one of the four syntaxes, a delay after each run, a union of several, or none. Fields are those of
 * `ScheduleInput`, with times and durations as text. They are untrusted, and pass `scheduleSchema` before any other code reads them.
 */
export type Schedule = (SimpleSchedule | DelaySchedule | UnionSchedule | ManualSchedule) & WholeSchedule;

/** Fields of the whole schedule, never of a member of a union or of an exclusion. */
export interface WholeSchedule {
  jitter?: string | undefined;
  maxRuns?: number | undefined;
}

/** The field that says what kind a schedule is; `any`: a union. */
export type ScheduleKind = "cron" | "calendar" | "every" | "at" | "manual" | "any";

/** Exactly one of the four syntaxes. */
export type SimpleSchedule = CronSchedule | CalendarSchedule | EverySchedule | AtSchedule;

export interface CronSchedule extends Limited {
  cron: string;
  dialect?: CronDialect | undefined;
  timezone?: string | undefined;
  dst?: DstChoice | undefined;
}

export type CronDialect = "cron-parser";

export interface CalendarSchedule extends Limited {
  calendar: string;
  timezone?: string | undefined;
  dst?: DstChoice | undefined;
}

export interface EverySchedule extends Limited {
  /** By the calendar, the origin's wall clock is kept in `timezone`. */
  every: string;
  /** Default: the Unix epoch; by the calendar 1970-01-01T00:00 on the zone's clock. */
  origin?: string | undefined;
  timezone?: string | undefined;
}

/** A fixed delay: each occurrence is counted from the finish of the run before, not from a time of the clock. */
export interface DelaySchedule extends Limited {
  every: string;
  anchor: "finish";
  origin?: undefined;
  timezone?: undefined;
  jitter?: undefined;
}

export interface AtSchedule extends Limited {
  at: string | number;
}

/** No time of its own: the task runs only when it is triggered. */
export interface ManualSchedule {
  manual: true;
  start?: undefined;
  end?: undefined;
  except?: undefined;
  jitter?: undefined;
  maxRuns?: undefined;
}

/** Each time of any of its members, once where they coincide. */
export interface UnionSchedule extends Limited {
  any: SimpleSchedule[];
}

export interface Limited {
  /** The first and the last nominal time allowed, both inclusive: ISO 8601 with an offset. */
  start?: string | undefined;
  end?: string | undefined;
  /**
   * Times that are removed.
   *
   * - A calendar event of days only (`*-12-25`, `Sat,Sun`, `2026-08-*`) removes the whole local day; `*-*-*`
   *   with its own `start` and `end` removes all times between the two.
   * - Any other schedule removes its own times, to the millisecond: `* 12-13 * * *` removes 12:00:00 and 12:01:00, not
   *   12:00:30. Cron and calendar events are compared with the wall clock, in both passes of a repeated hour; a time
   *   that runs late because the clock skipped it is compared by its intended wall time.
   * - `named` removes the times of a shared calendar: a list of dates and calendar events.
   *
   * An exclusion without a timezone is read on the clock of its schedule: in a union, on that of each member; for a
   * delay after a run, which has no clock, in UTC.
   */
  except?: ScheduleExclusion[] | undefined;
}

export type ScheduleExclusion = ScheduleBounds &
  (
    | { cron: string; dialect?: CronDialect | undefined; timezone?: string | undefined }
    | { calendar: string; timezone?: string | undefined }
    | { every: string; origin?: string | undefined; timezone?: string | undefined }
    | { at: string | number }
    | { named: string; timezone?: string | undefined }
  );

export type ScheduleBounds = Pick<Limited, "start" | "end">;

/** Rules for local times that a clock change skips or repeats; the default depends on the syntax. */
export interface DstChoice {
  /** Times that are skipped: once, at the first instant after the gap, or not at all. */
  gap?: "run-after" | "skip" | undefined;
  /** Times that come twice: once, in the first pass, or in both passes. */
  overlap?: "first" | "both" | undefined;
}

/** Calendars that schedules refer to by name. */
export interface ScheduleContext {
  /** Shared calendars by name: dates (`2026-12-25`) and calendar events (`*-05-01`), as `checkCalendar` accepts them. */
  readonly calendars?: ReadonlyMap<string, readonly string[]>;
}

/**
 * A compiled schedule. Pure and stateless: the same call has the same result on every node,
 * before and after a restart. Times are UTC milliseconds.
 */
export interface CompiledSchedule {
  /**
   * The first nominal time strictly after `after`, or undefined if none is left. For a delay after the finish of a run:
   * `after` plus the delay, but not before its start.
   */
  next(after: number): number | undefined;
  /** The last nominal time at or before `at`, or undefined when there is none, as with each delay. Never walks. */
  latest(at: number): number | undefined;
}
