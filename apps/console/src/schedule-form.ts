import {
  CarillonError,
  calendarZone,
  canonicalSchedule,
  parseDuration,
  parseInstant,
  type Schedule,
  type ScheduleKind,
  scheduleKind,
} from "@carillon/sdk";

type Exclusion = NonNullable<Schedule["except"]>[number];

/** An edit on Bull Board's Schedulers page: a pattern with a zone, or an interval in ms, and limits. */
export interface ScheduleEdit {
  pattern?: string;
  tz?: string;
  every?: number;
  /** `maxRuns`. */
  limit?: number;
  /** `end`, UTC ms. */
  endDate?: number;
}

/** A schedule as Bull Board's Schedulers page shows it. */
export interface ScheduleForm extends ScheduleEdit {
  /** `start`, UTC ms. The page has no field to edit it. */
  startDate?: number;
}

/**
 * The page supports cron and fixed intervals. Every other kind is shown as a pattern that begins with its name, and
 * read back from it; no cron expression begins with these words.
 */
const NAMED = ["at", "calendar", "every"] as const;
const UTC = "UTC";
const MINUTE = 60_000;

/**
 * @param seed of the task, from `seedOf`, from which `H` derives its values
 * @throws for corrupt or foreign data
 */
export function showSchedule(schedule: Schedule, seed: string): ScheduleForm {
  const { start, end, maxRuns } = schedule;
  return {
    ...showSyntax(schedule, seed),
    ...(maxRuns === undefined ? {} : { limit: maxRuns }),
    ...(start === undefined ? {} : { startDate: parseInstant(start, "schedule.start") }),
    ...(end === undefined ? {} : { endDate: parseInstant(end, "schedule.end") }),
  };
}

type Syntax = Pick<ScheduleForm, "pattern" | "tz" | "every">;
type Of<Kind extends ScheduleKind> = Extract<Schedule, Record<Kind, unknown>>;

const SHOWN: { readonly [Kind in ScheduleKind]: (schedule: Of<Kind>, seed: string) => Syntax } = {
  cron: ({ cron, timezone = UTC }) => ({ pattern: cron, tz: timezone }),
  calendar: ({ calendar, timezone = UTC }) => ({ pattern: `calendar ${calendar}`, tz: timezone }),
  at: ({ at }) => ({ pattern: `at ${isoTime(at)}` }),
  any: (schedule, seed) => ({ pattern: canonicalSchedule(schedule, seed) }),
  every({ every, timezone = UTC }) {
    const ms = intervalOf(every);
    return ms === undefined ? { pattern: `every ${every}`, tz: timezone } : { every: ms };
  },
};

function showSyntax(schedule: Schedule, seed: string): Syntax {
  const show = SHOWN[scheduleKind(schedule)] as (schedule: Schedule, seed: string) => Syntax;
  return show(schedule, seed);
}

/**
 * The schedule after an edit. Fields that the page cannot show (an origin, for example) stay as they were. If its kind
 * changes, it keeps the fields of all kinds: start, end, except, jitter and maxRuns.
 *
 * @param seed of the task, as it was shown
 * @throws `INVALID_SCHEDULE` for a pattern that is not valid, or that cannot be edited here
 */
export function editSchedule(before: Schedule, edit: ScheduleEdit, seed: string): Schedule {
  return { ...editSyntax(before, edit, seed), ...editLimits(before, edit) };
}

function editSyntax(before: Schedule, edit: ScheduleEdit, seed: string): Schedule {
  const had = scheduleKind(before);
  if (had === "any") return sameUnion(before, edit, seed);
  if (edit.every !== undefined) return everyOf(before, edit.every);
  const [kind, text] = readPattern(edit.pattern ?? "");
  if (kind === "cron" && (had === "calendar" || had === "at")) refuseForeignPattern(had, before, text, seed);
  if (kind === "at") {
    if (showSyntax(before, seed).pattern === `at ${text}`) return before;
    return { ...(had === kind ? before : ofEveryKind(before, UTC)), at: text } as Schedule;
  }
  const clock = (kind === "calendar" ? calendarZone(text) : undefined) ?? edit.tz ?? UTC;
  const other = () => ({ ...ofEveryKind(before, clock), ...(kind === "every" ? {} : dstOf(before)) });
  const { timezone, ...rest } = (had === kind ? before : other()) as { timezone?: string };
  return { ...rest, [kind]: text, ...zoneOf(edit.tz, timezone) } as Schedule;
}

/** The kind of a pattern, and its expression. */
function readPattern(pattern: string): ["cron" | (typeof NAMED)[number], text: string] {
  const text = pattern.trim();
  const kind = NAMED.find((name) => text.startsWith(`${name} `));
  return kind ? [kind, text.slice(kind.length).trim()] : ["cron", text];
}

/** The page sends no empty fields, so missing ones stay as they were. */
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
 * The fields that remain after a change of kind. Exclusions on the clock of their schedule stay on the same clock.
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

/** Whether its times are independent of its schedule's clock: those of single times and fixed intervals are, and take no zone. */
function hasOwnClock(one: Exclusion): boolean {
  const { at, every, timezone } = one as { at?: unknown; every?: string; timezone?: string };
  return (
    at !== undefined || timezone !== undefined || (every !== undefined && intervalOf(every) !== undefined)
  );
}

/** Zone of a schedule; a calendar event may have one of its own, which takes precedence. */
function clockOf(schedule: Schedule): string {
  const { calendar, timezone } = schedule as { calendar?: string; timezone?: string };
  return (calendar === undefined ? undefined : calendarZone(calendar)) ?? timezone ?? UTC;
}

/** The `dst` rule, which cron and calendar events have in common. */
function dstOf(before: Schedule) {
  return "dst" in before && before.dst !== undefined ? { dst: before.dst } : {};
}

/** UTC is the default zone: it is shown, but only stored if it was before. */
function zoneOf(given: string | undefined, had: string | undefined): { timezone?: string } {
  if (given === undefined || (given === UTC && had === undefined)) return {};
  return { timezone: given };
}

/** A union does not fit into one line, so it can be read here but not edited. */
function sameUnion(before: Schedule, edit: ScheduleEdit, seed: string): Schedule {
  if (edit.every === undefined && edit.pattern?.trim() === showSyntax(before, seed).pattern) return before;
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
  if (showSyntax(before, "").every === ms) return before;
  const rest = scheduleKind(before) === "every" ? before : ofEveryKind(before, UTC);
  return { ...rest, every: durationText(ms) } as Schedule;
}

/** Refuses a pattern without its first word, which is more often a mistake than a cron schedule. */
function refuseForeignPattern(kind: ScheduleKind, before: Schedule, pattern: string, seed: string): void {
  if (/^(\S+\s+){4,5}\S+$/.test(pattern)) return;
  throw new CarillonError("INVALID_SCHEDULE", `neither "${kind} …" nor a cron pattern of 5 or 6 fields.`, {
    field: `schedule.${kind}`,
    remedy: `Give one of them, for example ${showSyntax(before, seed).pattern}.`,
  });
}

function isoTime(at: string | number): string {
  return typeof at === "number" ? new Date(at).toISOString() : at;
}

/** Milliseconds of an interval; undefined if their number is not fixed, as for a month. */
function intervalOf(every: string): number | undefined {
  try {
    return parseDuration(every);
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
