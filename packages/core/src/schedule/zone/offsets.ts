import { DAY, daysFromCivil, daysInMonth, HOUR, SECOND, weekdayOfDays, yearOfDays } from "../civil.js";
import { isUtc } from "./names.js";

/** A stretch of time with one offset. Cut at each turn of the UTC year too, where the offset may not change. */
export interface Segment {
  /** UTC ms, inclusive and exclusive. */
  readonly start: number;
  readonly end: number;
  /** Local minus UTC, in ms, in this segment and just before `start`. */
  readonly offset: number;
  readonly before: number;
}

const UTC_FOREVER: Segment = {
  start: Number.NEGATIVE_INFINITY,
  end: Number.POSITIVE_INFINITY,
  offset: 0,
  before: 0,
};

/**
 * Less than the shortest time between two clock changes that cancel each other out: an hour short of a week, as in
 * Noronha in October 2000 and, by today's rules, in Gaza in 2040.
 */
const PROBE = 6 * DAY;
/** Outside of these years the offset of the nearest one holds; no clock was changed before 1844. */
const FIRST_YEAR = 1_840;
const LAST_YEAR = 9_999;
/**
 * From this year on the tz database has only yearly rules. They give the same days in two years of the same length that
 * begin on the same weekday; 28 years without a missing leap day contain all fourteen kinds.
 */
const FAR_YEAR = 2_101;
const FAR_YEARS = 28;
const FAR_BY_KIND = new Map(
  Array.from({ length: FAR_YEARS }, (_, i) => [kindOf(FAR_YEAR + i), FAR_YEAR + i] as const),
);

const zones = new Map<string, Zone>();

/** The shared tables of a zone that is known to exist; undefined: UTC, by any of its names. */
export function zoneOf(id: string): Zone | undefined {
  if (isUtc(id)) return undefined;
  let zone = zones.get(id);
  if (zone === undefined) {
    zone = new Zone(id);
    zones.set(id, zone);
  }
  return zone;
}

/** @param zone undefined: UTC */
export function segmentAt(zone: Zone | undefined, time: number): Segment {
  return zone === undefined ? UTC_FOREVER : zone.at(time);
}

/** Two years whose clock changes stand for those of other years, in warnings. */
export const CHANGES = { from: Date.UTC(2026, 0, 1), to: Date.UTC(2028, 0, 1) } as const;

/** The segments that begin with a clock change, after `from` and at or before `to`. At most 100 segments are passed. */
export function changesOf(zone: Zone | undefined, from: number, to: number): Segment[] {
  const found: Segment[] = [];
  let segment = segmentAt(zone, from);
  for (let n = 0; n < 100 && segment.end <= to; n++) {
    segment = segmentAt(zone, segment.end);
    if (segment.offset !== segment.before) found.push(segment);
  }
  return found;
}

/** A zone's offsets, read from Intl once per year and then cached. */
export class Zone {
  readonly id: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #tables = new Map<number, readonly Segment[]>();
  #recent: Segment = { start: 0, end: 0, offset: 0, before: 0 };

  constructor(id: string) {
    this.id = id;
    this.#format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
      timeZone: id,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  }

  /** The segment that contains a UTC time. */
  at(utc: number): Segment {
    const recent = this.#recent;
    if (utc >= recent.start && utc < recent.end) return recent;
    const year = Math.min(Math.max(yearOfDays(Math.floor(utc / DAY)), FIRST_YEAR), LAST_YEAR);
    const table = year < FAR_YEAR + FAR_YEARS ? this.#table(year) : this.#farTable(year);
    let i = table.length - 1;
    while (i > 0 && utc < table[i]!.start) i--;
    this.#recent = table[i]!;
    return this.#recent;
  }

  #table(year: number): readonly Segment[] {
    let table = this.#tables.get(year);
    if (table === undefined) {
      table = this.#build(year);
      this.#tables.set(year, table);
    }
    return table;
  }

  /** Table of a year outside the window: that of a year of the same kind inside it, shifted. */
  #farTable(year: number): Segment[] {
    const alike = FAR_BY_KIND.get(kindOf(year))!;
    const moved = (daysFromCivil(year, 1, 1) - daysFromCivil(alike, 1, 1)) * DAY;
    const table = this.#table(alike).map(({ start, end, ...offsets }) => ({
      start: start + moved,
      end: end + moved,
      ...offsets,
    }));
    if (year === LAST_YEAR) table.push({ ...table.pop()!, end: Number.POSITIVE_INFINITY });
    return table;
  }

  #build(year: number): Segment[] {
    const from = daysFromCivil(year, 1, 1) * DAY;
    const to = daysFromCivil(year + 1, 1, 1) * DAY;
    const segments: Segment[] = [];
    let start = from;
    let before = this.#offset(from - SECOND);
    let offset = this.#offset(from);
    for (let low = from; low < to; ) {
      const high = Math.min(low + PROBE, to - SECOND);
      const after = this.#offset(high);
      if (after !== offset) {
        const change = this.#bisect(low, high, offset);
        segments.push({ start, end: change, offset, before });
        before = offset;
        offset = this.#offset(change);
        start = change;
        // There may be a second change before `high`: search on from here.
        low = change;
        continue;
      }
      if (high === to - SECOND) break;
      low = high;
    }
    segments.push({ start, end: to, offset, before });
    if (year === FIRST_YEAR) segments[0] = { ...segments[0]!, start: Number.NEGATIVE_INFINITY };
    return segments;
  }

  /** The first whole second after `low` whose offset differs from `offset`; `high` is known to differ. */
  #bisect(low: number, high: number, offset: number): number {
    let a = low / SECOND;
    let b = high / SECOND;
    while (b - a > 1) {
      const middle = Math.floor((a + b) / 2);
      if (this.#offset(middle * SECOND) === offset) a = middle;
      else b = middle;
    }
    return b * SECOND;
  }

  /** Asks Intl, which answers with a wall clock: `10/27/2024, 02:30:00`. */
  #offset(utc: number): number {
    const text = this.#format.format(utc);
    const comma = text.indexOf(",");
    const time = text.length - 8;
    const days = daysFromCivil(
      Number(text.slice(6, comma)),
      Number(text.slice(0, 2)),
      Number(text.slice(3, 5)),
    );
    const seconds =
      Number(text.slice(time, time + 2)) * 3_600 +
      Number(text.slice(time + 3, time + 5)) * 60 +
      Number(text.slice(time + 6));
    return days * DAY + seconds * SECOND - utc;
  }
}

/** Kind of a year: the weekday that it begins on, and whether it has a leap day. */
function kindOf(year: number): number {
  return weekdayOfDays(daysFromCivil(year, 1, 1)) * 2 + (daysInMonth(year, 2) - 28);
}

/** More than any offset, and more than any change of one: UTC-12 to UTC+14, and whole days at the date line. */
export const MAX_OFFSET = 16 * HOUR;
export const MAX_CHANGE = 25 * HOUR;

/** Monrovia was the last zone to give up an offset with odd seconds, on 1972-01-07: minutes of all zones begin together since. */
export const MINUTES_ALIGNED_SINCE: number = Date.UTC(1972, 0, 7, 0, 44, 30);

/** The first instant whose wall clock shows `local` or later: after a gap, and in an overlap's first pass. */
export function firstInstant(zone: Zone, local: number): number {
  let segment = zone.at(local - MAX_OFFSET);
  for (;;) {
    const time = Math.max(segment.start, local - segment.offset);
    if (time < segment.end) return time;
    segment = zone.at(segment.end);
  }
}
