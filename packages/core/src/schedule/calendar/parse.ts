import { CarillonError, quote } from "../../errors.js";
import { civilFromDays, DAY } from "../civil.js";
import { nearestDuration } from "../text/duration.js";
import { knownZone } from "../zone/names.js";
import { type Component, type Limits, MAX_YEAR, MICROS, MIN_YEAR, normalise, once } from "./chain.js";
import { CalendarReader } from "./reader.js";

/** A calendar event as written; a missing chain is `*`. Seconds count in microseconds, as systemd's do. */
export interface CalendarEvent {
  /** Bit 0 is Monday; 0 means any day. */
  weekdays: number;
  years?: readonly Component[];
  months?: readonly Component[];
  days?: readonly Component[];
  /** `days` count back from the end of the month. */
  fromEnd: boolean;
  hours?: readonly Component[];
  minutes?: readonly Component[];
  seconds?: readonly Component[];
  /** The expression's own zone, after its last space. */
  zone?: string;
  /**
   * It names days and no time: a schedule fires at midnight, an exclusion removes the whole day. Not set for `daily`
   * and the like.
   */
  daysOnly?: boolean;
}

const ZERO = [once(0)];
const FIRST = [once(1)];
const MIDNIGHT = { hours: ZERO, minutes: ZERO, seconds: ZERO };
const HALVES = [once(1), once(7)];
const YEARLY = { months: FIRST, days: FIRST, ...MIDNIGHT };

const SHORTHANDS: Readonly<Record<string, Partial<CalendarEvent>>> = {
  minutely: { seconds: ZERO },
  hourly: { minutes: ZERO, seconds: ZERO },
  daily: MIDNIGHT,
  weekly: { weekdays: 1, ...MIDNIGHT },
  monthly: { days: FIRST, ...MIDNIGHT },
  quarterly: { months: [1, 4, 7, 10].map(once), days: FIRST, ...MIDNIGHT },
  "semi-annually": { months: HALVES, days: FIRST, ...MIDNIGHT },
  semiannually: { months: HALVES, days: FIRST, ...MIDNIGHT },
  "bi-annually": { months: HALVES, days: FIRST, ...MIDNIGHT },
  biannually: { months: HALVES, days: FIRST, ...MIDNIGHT },
  annually: YEARLY,
  anually: YEARLY, // systemd's own old spelling
  yearly: YEARLY,
};

const REMEDY = "Write it as systemd does: Mon..Fri 09:00, *-*-01 00:00, *:0/15, *-*~01 23:59, daily.";

/**
 * Reads systemd's OnCalendar grammar.
 * @throws `INVALID_SCHEDULE`; `INVALID_TIMEZONE` when only the zone after the last space is wrong
 */
export function parseCalendar(expression: string): CalendarEvent {
  const { text, zone } = splitZone(expression);
  const event = parseEvent(text);
  if (typeof event !== "string") {
    // An `@` timestamp is UTC, regardless of a zone after it.
    if (zone !== undefined && event.zone === undefined) event.zone = zone;
    return event;
  }
  const space = expression.lastIndexOf(" ");
  const word = expression.slice(space + 1);
  if (
    zone === undefined &&
    space > 0 &&
    /^[A-Za-z]/.test(word) &&
    typeof parseEvent(expression.slice(0, space)) !== "string"
  ) {
    throw new CarillonError("INVALID_TIMEZONE", `${quote(word)} is not a timezone.`, {
      field: "schedule.calendar",
      remedy:
        "Use an IANA name such as Europe/Paris or UTC, in its own spelling; abbreviations are ambiguous.",
    });
  }
  const interval = nearestDuration(expression);
  if (interval !== undefined)
    throw calendarFault(`${quote(expression)} is a duration.`, `Use { every: "${interval}" } instead.`);
  throw calendarFault(expression === "" ? "The expression is empty." : `${quote(expression)}: ${event}`);
}

export function calendarFault(what: string, remedy = REMEDY): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", what, { field: "schedule.calendar", remedy });
}

function splitZone(expression: string): { text: string; zone?: string } {
  const space = expression.lastIndexOf(" ");
  const zone = space < 0 ? undefined : knownZone(expression.slice(space + 1));
  return zone === undefined ? { text: expression } : { text: expression.slice(0, space), zone };
}

/** The event, or the problem with the text. */
function parseEvent(text: string): CalendarEvent | string {
  if (text.trim() === "") return "there is no date and no time.";
  const name = text.toLowerCase();
  if (Object.hasOwn(SHORTHANDS, name)) return { weekdays: 0, fromEnd: false, ...SHORTHANDS[name] };
  const reader = new CalendarReader(text);
  const weekdays = reader.weekdays();
  if (weekdays === undefined) return reader.fault ?? "the weekdays are not readable.";
  const event: CalendarEvent = { weekdays: weekdays === 127 ? 0 : weekdays, fromEnd: false };
  if (reader.peek() === "@") {
    const seconds = reader.timestamp();
    return seconds === undefined ? "@ needs a number of seconds since 1970." : stamp(event, seconds);
  }
  const date = reader.date();
  if (date && reader.peek() === "") event.daysOnly = true;
  const time = date && reader.time();
  if (!date || !time) return reader.fault ?? "the date or the time is not readable.";
  Object.assign(event, date, time);
  return check(event);
}

function stamp(event: CalendarEvent, seconds: number): CalendarEvent | string {
  const days = Math.floor((seconds * 1_000) / DAY);
  const date = civilFromDays(days);
  const inDay = seconds - (days * DAY) / 1_000;
  Object.assign(event, {
    years: [once(Math.floor(date / 512))],
    months: [once((date >> 5) & 15)],
    days: [once(date & 31)],
    hours: [once(Math.floor(inDay / 3_600))],
    minutes: [once(Math.floor(inDay / 60) % 60)],
    seconds: [once((inDay % 60) * MICROS)],
    zone: "UTC",
  });
  return check(event);
}

const LIMITS: Readonly<Record<"years" | "months" | "days" | "hours" | "minutes" | "seconds", Limits>> = {
  years: { name: "year", from: MIN_YEAR, to: MAX_YEAR },
  months: { name: "month", from: 1, to: 12 },
  days: { name: "day", from: 1, to: 31 },
  hours: { name: "hour", from: 0, to: 23 },
  minutes: { name: "minute", from: 0, to: 59 },
  seconds: { name: "second", from: 0, to: 60 * MICROS - 1 },
};

/** Puts all chains into systemd's normal order and checks their limits. */
function check(event: CalendarEvent): CalendarEvent | string {
  if (event.fromEnd && event.days === undefined) event.fromEnd = false;
  for (const part of Object.keys(LIMITS) as Array<keyof typeof LIMITS>) {
    const chain = event[part];
    if (chain === undefined) continue;
    const result = normalise(chain, LIMITS[part], part === "days" && event.fromEnd);
    if (typeof result === "string") return result;
    event[part] = result;
  }
  return event;
}
