import { relative, formatInstant as utcIso, type Voice } from "@carillon/ops/words";
import type * as Sdk from "@carillon/sdk/schedule";

export { formatInstant as utcIso } from "@carillon/ops/words";

/** The zone of this machine. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const formats = new Map<string, Intl.DateTimeFormat>();

/** ISO 8601 with the offset that `zone` has then: `2026-01-01T01:00:00+01:00`. */
export function localIso(ms: number, zone: string = HERE): string {
  const parts: Record<string, string> = {};
  for (const { type, value } of formatOf(zone).formatToParts(ms)) parts[type] = value;
  const { year = "", month, day, hour, minute, second } = parts;
  const date = `${year.padStart(4, "0")}-${month}-${day}`;
  const wall = Date.parse(`${date}T${hour}:${minute}:${second}Z`);
  // Years beyond four digits are written in UTC.
  if (Number.isNaN(wall)) return utcIso(ms);
  const offset = Math.round((wall - Math.floor(ms / 1000) * 1000) / 1000);
  const fraction = ms % 1000 === 0 ? "" : `.${String(((ms % 1000) + 1000) % 1000).padStart(3, "0")}`;
  return `${date}T${hour}:${minute}:${second}${fraction}${offsetText(offset)}`;
}

/** Local time in `zone`: `2026-01-01 01:00:00`. */
export function wallText(ms: number, zone: string): string {
  return localIso(ms, zone)
    .replace("T", " ")
    .replace(/(Z|[+-][\d:]+)$/, "");
}

function offsetText(seconds: number): string {
  const abs = Math.abs(seconds);
  const two = (value: number) => String(value).padStart(2, "0");
  const rest = abs % 60 === 0 ? "" : `:${two(abs % 60)}`;
  return `${seconds < 0 ? "-" : "+"}${two(Math.floor(abs / 3600))}:${two(Math.floor(abs / 60) % 60)}${rest}`;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    const two = "2-digit";
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      calendar: "gregory",
      hourCycle: "h23",
      year: "numeric",
      month: two,
      day: two,
      hour: two,
      minute: two,
      second: two,
    });
    formats.set(zone, format);
  }
  return format;
}

/** For people: the local time and how far away it is. */
export function when(ms: number | undefined, now: number = Date.now()): string {
  return ms === undefined ? "-" : `${localIso(ms)} (${relative(ms, now)})`;
}

/** For sentences of `@carillon/ops/words`. */
export const CLI_VOICE: Voice = { surface: "cli", time: utcIso };

/** Formats of times for one place. */
export interface TimeTexts {
  /** A time and how far away it is. */
  when(ms: number | undefined): string;
  /** A time alone. */
  at(ms: number): string;
}

/** ISO 8601 with offset, for programs and for details. */
export const LONG_TIMES: TimeTexts = { when: (ms) => when(ms), at: (ms) => localIso(ms) };

/**
 * `14:39:10 in 2 h`, `11-25 03:00`, `2027-01-01 00:00`: a time in this machine's zone, without the parts that are the
 * same as now.
 */
export function shortTimes(now: number, used: () => void): TimeTexts {
  const today = localIso(now);
  const at = (ms: number) => {
    used();
    const text = localIso(ms);
    const [date = "", clock = ""] = text.split("T");
    if (today.startsWith(date)) return clock.slice(0, 8);
    const sameYear = today.slice(0, 5) === text.slice(0, 5);
    return `${date.slice(sameYear ? 5 : 0)} ${clock.slice(0, 5)}`;
  };
  return {
    at,
    when: (ms) => {
      if (ms === undefined) return "-";
      return Math.abs(ms - now) < DAY ? `${at(ms)} ${relative(ms, now, 1)}` : at(ms);
    },
  };
}

const DAY = 86_400_000;

/** A point in time as the SDK reads it, in UTC ms; undefined for anything else. */
export function readInstant({ parseInstant }: typeof Sdk, given: unknown): number | undefined {
  try {
    return parseInstant(given as string, "time");
  } catch {
    return undefined;
  }
}
