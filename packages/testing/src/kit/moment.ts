import { CarillonError, parseInstant } from "@carillon/core";
import { durationOption, invalid, MAX_DURATION, quote } from "@carillon/core/internal";

/**
 * A point of virtual time: epoch ms, a Date, ISO 8601 with an offset, or `mm:ss` or `h:mm:ss` after the kit's start, as
 * timelines are written (`00:35`, `1:02:30`).
 */
export type Moment = number | Date | string;

/** A length of virtual time: ms, or text as in schedules, `90s`, `1h30m`; words too: `3 days`. */
export type Span = number | string;

const AFTER_START = /^(?:(\d+):)?(\d{1,2}):([0-5]\d)(?:\.(\d{1,3}))?$/;
const WORDS = /(\d+)\s*(week|day|hour|minute|min|second|sec|millisecond)s?\b[\s,]*/gi;
const UNITS: Readonly<Record<string, string>> = {
  week: "w",
  day: "d",
  hour: "h",
  minute: "m",
  min: "m",
  second: "s",
  sec: "s",
  millisecond: "ms",
};

/** @throws `INVALID_OPTION` with `field` */
export function timeOf(moment: Moment, start: number, field: string): number {
  if (typeof moment === "string") {
    const after = AFTER_START.exec(moment);
    if (after) return start + lengthAfterStart(after);
  }
  const given = moment instanceof Date ? moment.getTime() : moment;
  try {
    // A date alone is its midnight in UTC.
    return parseInstant(/^\d{4}-\d{2}-\d{2}$/.test(String(given)) ? `${given}T00:00Z` : given, field);
  } catch (cause) {
    throw new CarillonError("INVALID_OPTION", `${quote(moment)} is not a time.`, {
      field,
      remedy:
        "Give ISO 8601 with an offset, 2026-01-05T09:00:00Z, epoch milliseconds, or mm:ss after the kit's start.",
      cause,
    });
  }
}

function lengthAfterStart([, hours, minutes, seconds, fraction]: RegExpExecArray): number {
  const whole = (Number(hours ?? 0) * 60 + Number(minutes)) * 60 + Number(seconds);
  return whole * 1_000 + Number((fraction ?? "").padEnd(3, "0"));
}

/** @throws `INVALID_OPTION` naming `field` */
export function lengthOf(span: Span, field: string): number {
  if (typeof span !== "string") {
    if (Number.isInteger(span) && span >= 0) return span;
    throw invalid(
      field,
      `got ${typeof span === "number" ? String(span) : quote(span)}.`,
      "Give whole milliseconds, 0 or more, or a duration: 90s, 3 days.",
    );
  }
  const short = span
    .trim()
    .replace(WORDS, (_, count: string, unit: string) => count + UNITS[unit.toLowerCase()]);
  return durationOption(short, field, 1, MAX_DURATION);
}

/** ISO 8601 in UTC, without `.000`. */
export function timeText(time: number | undefined): string {
  return time === undefined ? "never" : new Date(time).toISOString().replace(".000Z", "Z");
}
