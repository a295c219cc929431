/**
 * When a task runs, as users write it. Exactly one of the four syntaxes; every field is data from strangers
 * and has passed `scheduleSchema` before anything else sees it.
 */
export type Schedule = CronSchedule | CalendarSchedule | EverySchedule | AtSchedule;

export interface CronSchedule {
  /** Five fields, or six with seconds first. */
  cron: string;
  /** IANA zone; default `UTC`. */
  timezone?: string | undefined;
}

export interface CalendarSchedule {
  /** A systemd OnCalendar expression. */
  calendar: string;
  timezone?: string | undefined;
}

export interface EverySchedule {
  /** A duration, `10s`, `1h30m`, `PT5M`: fixed rate, counted from `origin`. */
  every: string;
  /** ISO 8601 with an offset; default the Unix epoch. */
  origin?: string | undefined;
}

export interface AtSchedule {
  /** Once: ISO 8601 with an offset, or epoch milliseconds. */
  at: string | number;
}

/**
 * A schedule ready to answer. Pure and stateless: the same question has the same answer on every node,
 * before and after a restart. Times are UTC milliseconds.
 */
export interface CompiledSchedule {
  /** The first nominal time strictly after `after`, or undefined when none is left. */
  next(after: number): number | undefined;
  /** The last nominal time at or before `at`, or undefined when there is none. Never walks. */
  latest(at: number): number | undefined;
}
