import { CarillonError, quote } from "../../errors.js";
import { calendarFields } from "../calendar/fields.js";
import { parseCalendar } from "../calendar/parse.js";
import { daysInMonth } from "../civil.js";
import { timeless } from "../fields/fields.js";
import { CalendarDays, type DaySet, monthKey } from "./day-set.js";
import { type Rule, ruleOf } from "./on-clock.js";

export const MAX_CALENDAR_ENTRIES = 4_096;
/** The most entries that are not plain dates. */
const MAX_RULES = 64;
const MAX_ENTRY_LENGTH = 512;

/** The entries of a calendar that are read on one clock: whole days, and events with times of day. */
export interface NamedRules {
  /** Undefined: the clock of the schedule. */
  readonly zone: string | undefined;
  readonly days: DaySet | undefined;
  readonly events: readonly Rule[];
}

/** An entry that is not a plain date. */
interface Entry extends Rule {
  readonly zone: string | undefined;
  readonly daysOnly: boolean;
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
/** Thousands of tasks share one list, so it is parsed once. */
const read = new WeakMap<readonly string[], readonly NamedRules[]>();

/** @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE` */
export function namedCalendar(entries: readonly string[], field: string): readonly NamedRules[] {
  let calendar = read.get(entries);
  if (calendar === undefined) {
    calendar = readEntries(entries, field);
    read.set(entries, calendar);
  }
  return calendar;
}

/**
 * Checks a shared calendar from outside: a list of dates (`2026-12-25`) and calendar events (`*-05-01`, `Sat,Sun`,
 * `*-12-24 12..23:*`), each with a zone of its own (`*-12-25 Europe/Berlin`) or read in that of the schedule.
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, with the entry
 */
export function checkCalendar(entries: unknown): string[] {
  if (!Array.isArray(entries)) throw fault("A calendar is a list of texts.", "entries");
  readEntries(entries, "entries");
  return [...entries];
}

function readEntries(entries: readonly string[], field: string): readonly NamedRules[] {
  if (entries.length > MAX_CALENDAR_ENTRIES)
    throw fault(`The calendar has more than ${MAX_CALENDAR_ENTRIES} entries.`, field);
  const dates = new Map<number, number>();
  const rules: Entry[] = [];
  for (const [i, text] of entries.entries()) {
    const at = `${field}[${i}]`;
    if (typeof text !== "string" || text.length > MAX_ENTRY_LENGTH)
      throw fault(`The entry is not a text of at most ${MAX_ENTRY_LENGTH} characters.`, at);
    const [year, month, date] = DATE.exec(text)?.slice(1).map(Number) ?? [];
    if (year !== undefined && month !== undefined && date !== undefined) {
      if (month < 1 || month > 12 || date < 1 || date > daysInMonth(year, month))
        throw fault(`${quote(text)} does not exist.`, at);
      const key = monthKey(year, month);
      dates.set(key, (dates.get(key) ?? 0) | (1 << (date - 1)));
    } else if (rules.length === MAX_RULES) {
      throw fault(`More than ${MAX_RULES} entries are not plain dates.`, at);
    } else {
      rules.push(readRule(text, at));
    }
  }
  const zones = new Set([undefined, ...rules.map(({ zone }) => zone)]);
  return [...zones].map((zone) => ofZone(zone, rules, zone === undefined ? dates : new Map()));
}

function readRule(text: string, field: string): Entry {
  try {
    const event = parseCalendar(text);
    const fields = timeless(calendarFields(event));
    return { ...ruleOf(fields), zone: event.zone, daysOnly: event.daysOnly ?? false };
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    throw new CarillonError(error.code, `${quote(text)} is neither a date nor a calendar event.`, {
      field,
      remedy: "Write a date, 2026-12-25, or days of each year, *-12-25.",
      cause: error,
    });
  }
}

function ofZone(
  zone: string | undefined,
  all: readonly Entry[],
  dates: ReadonlyMap<number, number>,
): NamedRules {
  const rules = all.filter((rule) => rule.zone === zone);
  const days = rules.filter(({ daysOnly }) => daysOnly).map((rule) => rule.days);
  return {
    zone,
    days: dates.size + days.length === 0 ? undefined : new CalendarDays(dates, days),
    events: rules.filter(({ daysOnly }) => !daysOnly),
  };
}

function fault(what: string, field: string): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", what, {
    field,
    remedy: 'Give dates and calendar events, ["2026-12-25", "*-05-01"].',
  });
}
