import { mark } from "./decorators.js";

export { CronExpression } from "./cron-expression.js";

/** Options of `Cron`, as those of `@nestjs/schedule`. */
export interface CronOptions {
  /** Required: the task's id. */
  name?: string | undefined;
  /** Default: the time zone of this process. */
  timeZone?: string | undefined;
  /** Skips a time while the run before is not over. Default false: both run at the same time. */
  waitForCompletion?: boolean | undefined;
  /** Stored as paused if it is new. Default false. */
  disabled?: boolean | undefined;
  /** Not needed: no timer runs in this process. */
  unrefTimeout?: boolean | undefined;
  /** Not needed: the catch-up policy of a task decides about late times. */
  threshold?: number | undefined;
  /** Refused: give `timeZone`. */
  utcOffset?: number | undefined;
  /** Refused: a task starts no replica. */
  initialDelay?: number | undefined;
}

type Decorator = ReturnType<typeof mark>;

const NAMELESS = "the name is missing. Give one that stays the same: it is the task's id on all replicas";

/** `@Cron` of `@nestjs/schedule`, on one of all replicas. */
export function Cron(cronTime: string | Date | { toJSDate(): Date }, options: CronOptions = {}): Decorator {
  const { name: id, timeZone, waitForCompletion, disabled, utcOffset, initialDelay } = options;
  if (!id) return mark({ fault: `@Cron: ${NAMELESS}: { name: "…" }.` });
  if (utcOffset !== undefined) return mark({ fault: "@Cron: utcOffset is not supported. Give timeZone." });
  if (initialDelay) return mark({ fault: "@Cron: initialDelay is not supported. Leave it out." });
  const overlap = waitForCompletion ? "skip" : "allow";
  const common = { id, overlap, ...(disabled ? { enabled: false } : {}) } as const;
  if (typeof cronTime !== "string") {
    const at = (cronTime instanceof Date ? cronTime : cronTime.toJSDate()).toISOString();
    return mark({ task: { ...common, schedule: { at } } });
  }
  const timezone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  return mark({ task: { ...common, schedule: { cron: cronTime, timezone } } });
}

/** `@Interval` of `@nestjs/schedule`, on one of all replicas; milliseconds. */
export function Interval(timeout: number): Decorator;
export function Interval(name: string, timeout: number): Decorator;
export function Interval(name: string | number, every?: number): Decorator {
  if (typeof name !== "string" || every === undefined)
    return mark({ fault: `@Interval: ${NAMELESS}: @Interval("…", ${name}).` });
  return mark({ task: { id: name, schedule: { every }, overlap: "allow" } });
}

/** `@Timeout` of `@nestjs/schedule`, on one of the replicas that start at the same time; milliseconds. */
export function Timeout(timeout: number): Decorator;
export function Timeout(name: string, timeout: number): Decorator;
export function Timeout(name: string | number, delay?: number): Decorator {
  if (typeof name !== "string" || delay === undefined)
    return mark({ fault: `@Timeout: ${NAMELESS}: @Timeout("…", ${name}).` });
  return mark({ once: { id: name, delay } });
}
