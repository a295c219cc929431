import { CarillonError, canonicalSchedule, parseDuration, type Schedule } from "@carillon/sdk";

type EverySchedule = Extract<Schedule, { every: string }>;

/** A schedule as Bull Board's Schedulers page shows and edits it: a pattern with a zone, or an interval in ms. */
export interface ScheduleForm {
  pattern?: string;
  tz?: string;
  every?: number;
}

/** What an edit there sends. */
export interface ScheduleEdit extends ScheduleForm {
  limit?: number;
  endDate?: number;
}

/**
 * The page knows cron and fixed intervals. Everything else is shown as a pattern that says what it is, and read back from
 * it; no cron expression begins with these words.
 */
const CALENDAR = "calendar ";
const AT = "at ";
const EVERY = "every ";
const UTC = "UTC";

export function showSchedule(schedule: Schedule): ScheduleForm {
  if ("cron" in schedule) return { pattern: schedule.cron, tz: schedule.timezone ?? UTC };
  if ("calendar" in schedule) return { pattern: CALENDAR + schedule.calendar, tz: schedule.timezone ?? UTC };
  if ("at" in schedule) return { pattern: AT + isoTime(schedule.at) };
  if ("any" in schedule) return { pattern: canonicalSchedule(schedule) };
  const every = intervalOf(schedule);
  if (every !== undefined) return { every };
  return { pattern: EVERY + schedule.every, tz: schedule.timezone ?? UTC };
}

/**
 * The schedule after an edit. What the page cannot show of it (an origin, for example) stays as it was.
 *
 * @throws `INVALID_OPTION` where the edit says what a task's schedule cannot say
 */
export function editSchedule(before: Schedule, edit: ScheduleEdit): Schedule {
  refuse(edit.limit, "limit", "Max runs");
  refuse(edit.endDate, "endDate", "An end date");
  if ("any" in before) return sameUnion(before, edit);
  if (edit.every !== undefined) return everyOf(before, edit.every);
  const pattern = (edit.pattern ?? "").trim();
  const zone = (had: string | undefined) => zoneOf(edit.tz, had);
  if (pattern.startsWith(AT)) {
    const text = pattern.slice(AT.length).trim();
    if ("at" in before && text === isoTime(before.at)) return before;
    return { ...("at" in before ? before : {}), at: text };
  }
  if (pattern.startsWith(CALENDAR)) {
    const { timezone, ...rest } = "calendar" in before ? before : { timezone: undefined };
    return { ...rest, calendar: pattern.slice(CALENDAR.length).trim(), ...zone(timezone) };
  }
  if (pattern.startsWith(EVERY)) {
    const { timezone, ...rest } = "every" in before ? before : { timezone: undefined };
    return { ...rest, every: pattern.slice(EVERY.length).trim(), ...zone(timezone) };
  }
  if ("calendar" in before || "at" in before) refuseForeignPattern(before, pattern);
  const { timezone, ...rest } = "cron" in before ? before : { timezone: undefined };
  return { ...rest, cron: pattern, ...zone(timezone) };
}

/** UTC is what no zone means: it is shown, but only written where it was. */
function zoneOf(given: string | undefined, had: string | undefined): { timezone?: string } {
  if (given === undefined || (given === UTC && had === undefined)) return {};
  return { timezone: given };
}

/** A union is too much for one line; it can be looked at here. */
function sameUnion(before: Schedule, edit: ScheduleEdit): Schedule {
  if (edit.every === undefined && edit.pattern?.trim() === showSchedule(before).pattern) return before;
  throw new CarillonError("INVALID_SCHEDULE", "a union of schedules cannot be edited here.", {
    field: "schedule.any",
    remedy: "Put the task with its new schedule.",
  });
}

function everyOf(before: Schedule, ms: number): Schedule {
  if (!Number.isSafeInteger(ms) || ms < 1) {
    throw new CarillonError("INVALID_SCHEDULE", `got ${ms}.`, {
      field: "schedule.every",
      remedy: "Give a whole number of milliseconds.",
    });
  }
  if (!("every" in before)) return { every: durationText(ms) };
  return intervalOf(before) === ms ? before : { ...before, every: durationText(ms) };
}

function refuse(value: unknown, field: string, what: string): void {
  if (value === undefined || value === null) return;
  throw new CarillonError("INVALID_OPTION", `${what} cannot be set here: a task's schedule has none.`, {
    field,
    remedy: "Leave the field empty.",
  });
}

/** Leaving the word out is a slip more often than the wish for a cron schedule. */
function refuseForeignPattern(before: Schedule, pattern: string): void {
  const kind = "at" in before ? "at" : "calendar";
  if (/^(\S+\s+){4,5}\S+$/.test(pattern)) return;
  throw new CarillonError("INVALID_SCHEDULE", `neither "${kind} …" nor a cron pattern of 5 or 6 fields.`, {
    field: `schedule.${kind}`,
    remedy: `Give one of them, for example ${showSchedule(before).pattern}.`,
  });
}

function isoTime(at: string | number): string {
  return typeof at === "number" ? new Date(at).toISOString() : at;
}

/** Milliseconds, where the interval has a fixed number of them: a month has not. */
function intervalOf(schedule: EverySchedule): number | undefined {
  try {
    return parseDuration(schedule.every);
  } catch {
    return undefined;
  }
}

function durationText(ms: number): string {
  for (const [unit, size] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
  ] as const) {
    if (ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}
