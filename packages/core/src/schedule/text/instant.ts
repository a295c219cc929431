import { z } from "zod";
import { CarillonError, quote } from "../../errors.js";
import { formatInstant } from "../../words/times.js";
import { DAY, daysFromCivil, daysInMonth, HOUR, MAX_TIME, MINUTE, SECOND } from "../civil.js";

/** A point in time, as callers give it: ISO 8601 with an offset, a `Date`, or epoch milliseconds. */
export type Instant = string | number | Date;

/** Shape of a point in time from outside; `parseInstant` reads it. */
export const INSTANT: z.ZodType<Instant> = z.union(
  [z.string(), z.number(), z.instanceof(Date)],
  "not a time",
);

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)$/;
const REMEDY = "Write ISO 8601 with an offset, 2026-01-31T09:00:00Z or 2026-01-31T09:00:00+01:00.";

/**
 * UTC ms of a point in time: ISO 8601 with an offset, a `Date`, or whole epoch milliseconds. `field` is for the error.
 * Does not use `Date.parse`, which reads `2026-02-30` as March, and times without an offset in the zone of the host.
 * @throws `INVALID_SCHEDULE`
 */
export function parseInstant(given: Instant, field: string): number {
  const value = given instanceof Date ? given.getTime() : given;
  if (typeof value === "number") {
    if (Number.isInteger(value) && Math.abs(value) <= MAX_TIME) return value;
    if (given instanceof Date && Number.isNaN(value)) throw fault(field, "an invalid Date.");
    throw fault(field, `${quote(value)} is not a time in whole milliseconds since 1970.`);
  }
  const match = typeof value === "string" && value.length <= 64 ? ISO.exec(value) : null;
  if (!match) {
    const local =
      typeof value === "string" && /^\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2})?)?$/.test(value);
    throw fault(field, local ? `${quote(value)} has no offset.` : `${quote(value)} is not a time.`);
  }
  const [year, month, day, hour, minute] = match.slice(1, 6).map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const second = Number(match[6] ?? 0);
  const offset = Number(match[10] ?? 0) * HOUR + Number(match[11] ?? 0) * MINUTE;
  const exists =
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysInMonth(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59;
  if (!exists || offset > 18 * HOUR || Number(match[11] ?? 0) > 59)
    throw fault(field, `${quote(value)} does not exist.`);
  const fraction = Number((match[7] ?? "").padEnd(3, "0").slice(0, 3));
  const local =
    daysFromCivil(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction;
  return match[9] === "-" ? local + offset : local - offset;
}

function fault(field: string, what: string): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", what, { field, remedy: REMEDY });
}

/**
 * A point in time as it is stored: ISO 8601 in UTC, which reads back as the same time.
 * @throws `INVALID_SCHEDULE`, also for times whose year in UTC does not have four digits
 */
export function storedInstant(value: Instant, field: string): string {
  const text = formatInstant(parseInstant(value, field));
  if (/^\d/.test(text)) return text;
  throw fault(field, `${quote(value)} is not within the years 0000 to 9999 of UTC.`);
}
