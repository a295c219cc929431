/* Texts of times on the clock of a zone, and times that are typed as such. */

const formats = new Map<string, Intl.DateTimeFormat>();

function format(at: number, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  const key = timeZone + JSON.stringify(options);
  const known = formats.get(key) ?? new Intl.DateTimeFormat("en-GB", { timeZone, ...options });
  formats.set(key, known);
  return known.format(at);
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { weekday: "short", day: "numeric", month: "short" } as const;

/** `09:00:05` today, `Tue 24 Nov, 09:00` on other days, with the year if it is another one. Seconds only if there are any. */
export function shortTime(at: number, timeZone: string, today: number): string {
  const clock = format(at, timeZone, at % 60_000 === 0 ? CLOCK : { ...CLOCK, second: "2-digit" });
  const day = (of: number) => format(of, timeZone, { dateStyle: "short" });
  if (day(at) === day(today)) return clock;
  const year = (of: number) => format(of, timeZone, { year: "numeric" });
  const date = format(at, timeZone, year(at) === year(today) ? DAY : { ...DAY, year: "numeric" });
  return `${date}, ${clock}`;
}

/** `Tue, 24 Nov 2026, 09:00:05 CET`; without the zone if it is not `named`. */
export function fullTime(at: number, timeZone: string, named = true): string {
  return format(at, timeZone, {
    ...DAY,
    year: "numeric",
    ...CLOCK,
    second: "2-digit",
    ...(named ? { timeZoneName: "short" } : {}),
  });
}

/**
 * A time as `shortTime`, with the time of another zone after it, unless that is the same: `Sun 29 Nov, 01:30 (06:00 in Kolkata)`.
 *
 * @param own the zone of a task; undefined: none of its own
 */
export function bothTimes(at: number, timeZone: string, today: number, own: string | undefined): string {
  const shown = shortTime(at, timeZone, today);
  if (own === undefined || offsetOf(at, own) === offsetOf(at, timeZone)) return shown;
  const there = shortTime(at, own, at);
  const day = dayOf(at, own) === dayOf(at, timeZone) ? "" : `${format(at, own, { weekday: "short" })} `;
  return `${shown} (${day}${there} in ${placeOf(own)})`;
}

/** `Kolkata`, of `Asia/Kolkata`. */
function placeOf(zone: string): string {
  return (zone.split("/").at(-1) ?? zone).replaceAll("_", " ");
}

/** A date of the zone, or a part of one. */
export function dateText(at: number, timeZone: string, parts: Intl.DateTimeFormatOptions): string {
  return format(at, timeZone, parts);
}

/** `2026-11-24`, by the calendar of the zone. */
export function dayOf(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(at);
}

/** Start of a day as of `dayOf`; undefined if it is not one. */
export function startOf(day: string, timeZone: string): number | undefined {
  const at = typedTime(`${day}T00:00`, timeZone);
  return Number.isNaN(at) ? undefined : at;
}

const DAY_MS = 86_400_000;

/** Lead of a zone's clock over UTC at a time, in ms. */
function offsetOf(at: number, timeZone: string): number {
  const [day, month, year, clock] = format(at, timeZone, { dateStyle: "short", timeStyle: "medium" }).split(
    /[/,] ?/,
  );
  return Date.parse(`${year}-${month}-${day}T${clock}Z`) - Math.floor(at / 1_000) * 1_000;
}

/**
 * The time of a `datetime-local` input on the clock of a zone, UTC ms; NaN if it is not one. The first of two times with this text; for a
 * text that the clock skips, as much later as it skips.
 */
export function typedTime(text: string, timeZone: string): number {
  const wall = Date.parse(`${text}Z`);
  if (Number.isNaN(wall)) return wall;
  const [before, after] = [wall - DAY_MS, wall + DAY_MS].map((at) => wall - offsetOf(at, timeZone)) as [
    number,
    number,
  ];
  const isOne = (at: number) => at + offsetOf(at, timeZone) === wall;
  return !isOne(before) && isOne(after) ? after : before;
}

/** A time as an input shows it: the inverse of `typedTime`. */
export function fieldTime(at: number, timeZone: string): string {
  return new Date(at + offsetOf(at, timeZone)).toISOString().slice(0, 16);
}

export function isoTime(at: number): string {
  return new Date(at).toISOString();
}
