import { CarillonError, quote } from "../errors.js";
import { type CalendarEvent, parseCalendar } from "./calendar.js";
import { calendarFields } from "./calendar-fields.js";
import { formatCalendar } from "./calendar-format.js";
import { type CalendarStep, formatCalendarStep, parseCalendarStep } from "./calendar-interval.js";
import { DAY } from "./civil.js";
import { parseCron } from "./cron.js";
import { CALENDAR, type DstRule } from "./dst.js";
import { formatDuration, parseDuration } from "./duration.js";
import type { Fields } from "./fields.js";
import { parseInstant } from "./instant.js";
import { requireZone } from "./zone-names.js";

/** The longest cron or calendar expression, in characters. */
export const MAX_EXPRESSION_LENGTH = 512;

/** What the engine needs of a cron or calendar expression, and what descriptions are made of. */
export interface FieldPlan {
  readonly fields: Fields;
  /** The zone that counts: a calendar expression's own, else the given one, else UTC. */
  readonly zone: string;
  readonly rule: DstRule;
  readonly canonical: string;
  /** A calendar event as written. */
  readonly event?: CalendarEvent;
}

interface Expression {
  cron?: string;
  calendar?: string;
  timezone?: string | undefined;
}

/** Undefined for schedules that are not made of fields. @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE` */
export function planOf(schedule: Expression | object, seed = ""): FieldPlan | undefined {
  if ("cron" in schedule) {
    const { cron, timezone } = schedule as { cron: string; timezone?: string };
    limited(cron, "schedule.cron");
    const { fields, rule, canonical } = parseCron(cron, seed);
    return { fields, rule, canonical, zone: requireZone(timezone ?? "UTC", "schedule.timezone") };
  }
  if ("calendar" in schedule) {
    const { calendar, timezone } = schedule as { calendar: string; timezone?: string };
    limited(calendar, "schedule.calendar");
    const event = parseCalendar(calendar);
    // A wrong timezone is an error even where the expression has its own zone.
    const zone = requireZone(timezone ?? "UTC", "schedule.timezone");
    return {
      fields: calendarFields(event),
      rule: CALENDAR,
      canonical: formatCalendar(event),
      zone: event.zone ?? zone,
      event,
    };
  }
  return undefined;
}

/**
 * The zone that a calendar event names itself, after its last space, or has without a word (an `@` timestamp is UTC): it counts before the
 * `timezone` of its schedule. Undefined: none, or the expression cannot be read.
 */
export function calendarZone(calendar: string): string | undefined {
  try {
    limited(calendar, "schedule.calendar");
    return parseCalendar(calendar).zone;
  } catch {
    return undefined;
  }
}

/** Before any pattern looks at it: hostile input may be megabytes. */
function limited(expression: string, field: string): void {
  if (typeof expression !== "string") {
    throw new CarillonError("INVALID_SCHEDULE", `${quote(expression)} is not a text.`, { field });
  }
  if (expression.length > MAX_EXPRESSION_LENGTH) {
    const what = `The expression is longer than ${MAX_EXPRESSION_LENGTH} characters.`;
    throw new CarillonError("INVALID_SCHEDULE", what, {
      field,
      remedy: "Use a shorter one, or several tasks.",
    });
  }
}

/** An interval: a fixed number of ms, or a step of the calendar on a zone's clock. */
export interface IntervalPlan {
  readonly interval: number | CalendarStep;
  /** Undefined: the epoch. */
  readonly origin: number | undefined;
  readonly zone: string;
  readonly canonical: string;
}

/** @throws `INVALID_DURATION`, `INVALID_SCHEDULE`, `INVALID_TIMEZONE` */
export function intervalOf(schedule: {
  every: string;
  origin?: string | undefined;
  timezone?: string | undefined;
}): IntervalPlan {
  const { every, timezone } = schedule;
  const zone = requireZone(timezone ?? "UTC", "schedule.timezone");
  const origin = schedule.origin === undefined ? undefined : parseInstant(schedule.origin, "schedule.origin");
  const step = parseCalendarStep(every, "schedule.every");
  if (step) return { interval: step, origin, zone, canonical: formatCalendarStep(step) };
  const interval = parseDuration(every, "schedule.every");
  if (timezone === undefined) return { interval, origin, zone, canonical: formatDuration(interval) };
  if (interval % DAY !== 0) {
    throw new CarillonError(
      "INVALID_SCHEDULE",
      "timezone belongs to cron, calendar, and intervals of whole days, weeks, months and years.",
      { field: "schedule.timezone", remedy: "Leave it out here." },
    );
  }
  // With a zone, `1d` is a day of its calendar, which may have 23 h.
  const days: CalendarStep = { unit: "day", count: interval / DAY };
  return { interval: days, origin, zone, canonical: formatCalendarStep(days) };
}
