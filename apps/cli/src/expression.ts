import type { ScheduleKind } from "@carillon/sdk/schedule";

/** The kind of an expression; a union has no text of its own. */
export type Syntax = Exclude<ScheduleKind, "any">;

/** Complete on purpose: a new kind of schedule does not compile until it can be written here. */
export const SYNTAXES = Object.keys({
  cron: true,
  calendar: true,
  every: true,
  at: true,
  manual: true,
} satisfies Record<Syntax, true>) as Syntax[];

const WEEKDAY = /^(?:mon|tue|wed|thu|fri|sat|sun)/i;

/** The syntaxes hardly overlap: tries instant, duration and cron by their form; anything else is a calendar event. */
export function guessSyntax(expr: string): Syntax {
  const text = expr.trim();
  if (text === "manual") return "manual";
  // The errors of cron name the systems that write these.
  if (/^(?:(?:cron|rate|at)\(|RRULE:|FREQ=|DTSTART)/i.test(text)) return "cron";
  // `@daily` is cron's, `@1767225600` a calendar event.
  if (text.startsWith("@")) return /^@\d/.test(text) ? "calendar" : "cron";
  if (/^\d{12,}$/.test(text) || /^[+-]?\d{4,6}-\d{2}-\d{2}T/.test(text)) return "at";
  if (/^(\d+(\.\d+)?\s*[a-z]+\s*)+$/i.test(text) || /^P(?=[\dT])[\dTYMWDHS.,]+$/.test(text)) return "every";
  const fields = text.split(/\s+/);
  // A calendar event has four fields at most: weekdays, date, time, zone. Any of them may contain as many dashes as
  // cron's lists.
  if (fields.length >= 5) return "cron";
  // Fewer fields count as cron only if nothing else fits, so that the error names their number.
  const eventLike = WEEKDAY.test(text) || fields.some((field) => /:|\.\.|~|-.*-/.test(field));
  return fields.length >= 3 && !eventLike ? "cron" : "calendar";
}

/** One expression as a field of a schedule, before the schema checks it. */
export type Expression =
  | { cron: string; timezone?: string; dialect?: string }
  | { calendar: string; timezone?: string }
  | { every: string; timezone?: string }
  | { at: string | number }
  | { manual: true };

/** A zone applies to cron, calendar events, and intervals in words (`1 month`), not to durations (`10s`). */
export function expressionOf(expr: string, syntax: Syntax, timezone: string | undefined): Expression {
  const zone = timezone === undefined ? {} : { timezone };
  if (syntax === "cron") return { cron: expr, ...zone };
  if (syntax === "calendar") return { calendar: expr, ...zone };
  if (syntax === "manual") return { manual: true };
  if (syntax === "every") return { every: expr, ...(BY_CALENDAR.test(expr) ? zone : {}) };
  return { at: /^\d+$/.test(expr) ? Number(expr) : expr };
}

const BY_CALENDAR = /^\d+ (day|week|month|year)s?$|^P\d+[YM]/;
