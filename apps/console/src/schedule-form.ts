import {
  CarillonError,
  calendarZone,
  canonicalSchedule,
  parseDuration,
  parseInstant,
  type Schedule,
} from "@carillon/sdk";

type EverySchedule = Extract<Schedule, { every: string }>;
type Exclusion = NonNullable<Schedule["except"]>[number];

/** What an edit on Bull Board's Schedulers page sends: a pattern with a zone, or an interval in ms, and what limits it. */
export interface ScheduleEdit {
  pattern?: string;
  tz?: string;
  every?: number;
  /** `maxRuns`. */
  limit?: number;
  /** `end`, UTC ms. */
  endDate?: number;
}

/** A schedule as that page shows it. */
export interface ScheduleForm extends ScheduleEdit {
  /** `start`, UTC ms. The page has no field to edit it. */
  startDate?: number;
}

/**
 * The page knows cron and fixed intervals. Everything else is shown as a pattern that says what it is, and read back from
 * it; no cron expression begins with these words.
 */
const CALENDAR = "calendar ";
const AT = "at ";
const EVERY = "every ";
const UTC = "UTC";
const MINUTE = 60_000;

/**
 * @param id the task's: `H` is its own time
 * @throws where others have stored what cannot be read
 */
export function showSchedule(schedule: Schedule, id: string): ScheduleForm {
  const { start, end, maxRuns } = schedule;
  return {
    ...showSyntax(schedule, id),
    ...(maxRuns === undefined ? {} : { limit: maxRuns }),
    ...(start === undefined ? {} : { startDate: parseInstant(start, "schedule.start") }),
    ...(end === undefined ? {} : { endDate: parseInstant(end, "schedule.end") }),
  };
}

function showSyntax(schedule: Schedule, id: string): Pick<ScheduleForm, "pattern" | "tz" | "every"> {
  if ("cron" in schedule) return { pattern: schedule.cron, tz: schedule.timezone ?? UTC };
  if ("calendar" in schedule) return { pattern: CALENDAR + schedule.calendar, tz: schedule.timezone ?? UTC };
  if ("at" in schedule) return { pattern: AT + isoTime(schedule.at) };
  if ("any" in schedule) return { pattern: canonicalSchedule(schedule, id) };
  const every = intervalOf(schedule);
  if (every !== undefined) return { every };
  return { pattern: EVERY + schedule.every, tz: schedule.timezone ?? UTC };
}

/**
 * The schedule after an edit. What the page cannot show of it (an origin, for example) stays as it was. Of another kind it
 * keeps what every kind has: start, end, except, jitter and maxRuns.
 *
 * @param id the task's, as it was shown
 * @throws `INVALID_SCHEDULE` for what cannot be read, or not be edited here
 */
export function editSchedule(before: Schedule, edit: ScheduleEdit, id: string): Schedule {
  return { ...editSyntax(before, edit, id), ...editLimits(before, edit) };
}

function editSyntax(before: Schedule, edit: ScheduleEdit, id: string): Schedule {
  if ("any" in before) return sameUnion(before, edit, id);
  if (edit.every !== undefined) return everyOf(before, edit.every);
  const pattern = (edit.pattern ?? "").trim();
  const zone = (had: string | undefined) => zoneOf(edit.tz, had);
  if (pattern.startsWith(AT)) {
    const text = pattern.slice(AT.length).trim();
    if ("at" in before && text === isoTime(before.at)) return before;
    return { ...("at" in before ? before : ofEveryKind(before, UTC)), at: text };
  }
  const foreign = (clock = edit.tz ?? UTC) => ({ ...ofEveryKind(before, clock), timezone: undefined });
  if (pattern.startsWith(CALENDAR)) {
    const calendar = pattern.slice(CALENDAR.length).trim();
    const other = () => ({ ...foreign(clockOf({ calendar, timezone: edit.tz })), ...dstOf(before) });
    const { timezone, ...rest } = "calendar" in before ? before : other();
    return { ...rest, calendar, ...zone(timezone) };
  }
  if (pattern.startsWith(EVERY)) {
    const { timezone, ...rest } = "every" in before ? before : foreign();
    return { ...rest, every: pattern.slice(EVERY.length).trim(), ...zone(timezone) };
  }
  if ("calendar" in before || "at" in before) refuseForeignPattern(before, pattern, id);
  const { timezone, ...rest } = "cron" in before ? before : { ...foreign(), ...dstOf(before) };
  return { ...rest, cron: pattern, ...zone(timezone) };
}

/** The page sends no empty field: what it leaves out stays as it was. */
function editLimits({ end }: Schedule, { limit, endDate }: ScheduleEdit): Pick<Schedule, "maxRuns" | "end"> {
  return {
    ...(limit === undefined ? {} : { maxRuns: limit }),
    ...(endDate === undefined || isShownEnd(end, endDate) ? {} : { end: endText(endDate) }),
  };
}

/** The page's field has whole minutes. */
function isShownEnd(end: string | undefined, endDate: number): boolean {
  const shown = end === undefined ? undefined : parseInstant(end, "schedule.end");
  return shown === endDate || (shown !== undefined && shown - (shown % MINUTE) === endDate);
}

function endText(ms: number): string {
  const date = new Date(ms);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw new CarillonError("INVALID_SCHEDULE", `got ${ms}.`, {
    field: "schedule.end",
    remedy: "Give epoch milliseconds.",
  });
}

/**
 * What outlives a change of kind. Exclusions that go by the clock of their schedule go on by the same one.
 *
 * @param zone the clock of the new schedule
 */
function ofEveryKind(before: Schedule, zone: string) {
  const { start, end, except, jitter, maxRuns } = before;
  const had = clockOf(before);
  const stays = (one: Exclusion) => had === zone || hasOwnClock(one);
  return {
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
    ...(except === undefined
      ? {}
      : { except: except.map((one) => (stays(one) ? one : { ...one, timezone: had })) }),
    ...(jitter === undefined ? {} : { jitter }),
    ...(maxRuns === undefined ? {} : { maxRuns }),
  };
}

/** A time and a fixed interval are the same on every clock, and take no zone. */
function hasOwnClock(one: Exclusion): boolean {
  if ("at" in one || one.timezone !== undefined) return true;
  return "every" in one && intervalOf(one) !== undefined;
}

/** A calendar event may have a zone of its own, which counts before any other. */
function clockOf(schedule: Schedule): string {
  const own = "calendar" in schedule ? calendarZone(schedule.calendar) : undefined;
  return own ?? ("timezone" in schedule ? schedule.timezone : undefined) ?? UTC;
}

/** Cron and calendar events understand each other's. */
function dstOf(before: Schedule) {
  return "dst" in before && before.dst !== undefined ? { dst: before.dst } : {};
}

/** UTC is what no zone means: it is shown, but only written where it was. */
function zoneOf(given: string | undefined, had: string | undefined): { timezone?: string } {
  if (given === undefined || (given === UTC && had === undefined)) return {};
  return { timezone: given };
}

/** A union is too much for one line; it can be looked at here. */
function sameUnion(before: Schedule, edit: ScheduleEdit, id: string): Schedule {
  if (edit.every === undefined && edit.pattern?.trim() === showSyntax(before, id).pattern) return before;
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
  if (!("every" in before)) return { ...ofEveryKind(before, UTC), every: durationText(ms) };
  return intervalOf(before) === ms ? before : { ...before, every: durationText(ms) };
}

/** Leaving the word out is a slip more often than the wish for a cron schedule. */
function refuseForeignPattern(before: Schedule, pattern: string, id: string): void {
  const kind = "at" in before ? "at" : "calendar";
  if (/^(\S+\s+){4,5}\S+$/.test(pattern)) return;
  throw new CarillonError("INVALID_SCHEDULE", `neither "${kind} …" nor a cron pattern of 5 or 6 fields.`, {
    field: `schedule.${kind}`,
    remedy: `Give one of them, for example ${showSyntax(before, id).pattern}.`,
  });
}

function isoTime(at: string | number): string {
  return typeof at === "number" ? new Date(at).toISOString() : at;
}

/** Milliseconds, where the interval has a fixed number of them: a month has not. */
function intervalOf(schedule: Pick<EverySchedule, "every">): number | undefined {
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
