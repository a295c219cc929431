import { CarillonError, quote } from "../errors.js";
import { type CalendarEvent, parseCalendar } from "./calendar.js";
import { daysFromCivil, daysInMonth } from "./civil.js";

/** The most entries of a shared calendar; of these, as many may be calendar events. */
export const MAX_CALENDAR_ENTRIES = 4_096;
const MAX_RULES = 64;
const MAX_ENTRY_LENGTH = 512;

export interface NamedCalendar {
  /** Single dates, in days since 1970. */
  readonly dates: ReadonlySet<number>;
  readonly rules: ReadonlyArray<{ readonly text: string; readonly event: CalendarEvent }>;
}

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
/** Thousands of tasks share one list: it is read once. */
const read = new WeakMap<readonly string[], NamedCalendar>();

/** @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE` */
export function namedCalendar(entries: readonly string[], field: string): NamedCalendar {
  let calendar = read.get(entries);
  if (calendar === undefined) {
    calendar = readEntries(entries, field);
    read.set(entries, calendar);
  }
  return calendar;
}

/**
 * A shared calendar from a stranger's hands: a list of dates (`2026-12-25`) and calendar events (`*-05-01`, `Sat,Sun`,
 * `*-12-24 12..23:*`), each with a zone of its own (`*-12-25 Europe/Berlin`) or read in that of the schedule.
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, naming the entry
 */
export function checkCalendar(entries: unknown): string[] {
  if (!Array.isArray(entries)) throw fault("A calendar is a list of texts.", "entries");
  readEntries(entries, "entries");
  return [...entries];
}

function readEntries(entries: readonly string[], field: string): NamedCalendar {
  if (entries.length > MAX_CALENDAR_ENTRIES) {
    throw fault(`The calendar has more than ${MAX_CALENDAR_ENTRIES} entries.`, field);
  }
  const dates = new Set<number>();
  const rules: Array<{ text: string; event: CalendarEvent }> = [];
  for (const [i, text] of entries.entries()) {
    const at = `${field}[${i}]`;
    if (typeof text !== "string" || text.length > MAX_ENTRY_LENGTH) {
      throw fault(`The entry is not a text of at most ${MAX_ENTRY_LENGTH} characters.`, at);
    }
    const [year, month, date] = DATE.exec(text)?.slice(1).map(Number) ?? [];
    if (year !== undefined && month !== undefined && date !== undefined) {
      if (month < 1 || month > 12 || date < 1 || date > daysInMonth(year, month)) {
        throw fault(`${quote(text)} does not exist.`, at);
      }
      dates.add(daysFromCivil(year, month, date));
    } else if (rules.length === MAX_RULES) {
      throw fault(`More than ${MAX_RULES} entries are not plain dates.`, at);
    } else {
      rules.push({ text, event: parseEntry(text, at) });
    }
  }
  return { dates, rules };
}

function parseEntry(text: string, field: string): CalendarEvent {
  try {
    return parseCalendar(text);
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    throw new CarillonError(error.code, `${quote(text)} is neither a date nor a calendar event.`, {
      field,
      remedy: "Write a date, 2026-12-25, or days of each year, *-12-25.",
      cause: error,
    });
  }
}

function fault(what: string, field: string): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", what, {
    field,
    remedy: 'Give dates and calendar events, ["2026-12-25", "*-05-01"].',
  });
}
