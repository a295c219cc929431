import { DAY, daysFromCivil, HOUR, SECOND, yearOfDays } from "./civil.js";

/** A stretch of time with one offset. Cut at each turn of the UTC year too, where the offset may not change. */
export interface Segment {
  /** UTC ms, inclusive and exclusive. */
  readonly start: number;
  readonly end: number;
  /** Local minus UTC, in ms, and what it was just before `start`. */
  readonly offset: number;
  readonly before: number;
}

/** No rule of the tz database changes an offset twice within a week so that the two cancel out. */
const PROBE = 7 * DAY;
/** Outside of these years the offset of the nearest one holds; Intl formats them without ambiguity. */
const FIRST_YEAR = 100;
const LAST_YEAR = 9_999;
/** Years kept for each zone; a search through all years starts over rather than fill the memory. */
const MAX_TABLES = 500;

const zones = new Map<string, Zone>();

/** The shared tables of a zone that is known to exist. */
export function zoneOf(id: string): Zone {
  let zone = zones.get(id);
  if (zone === undefined) {
    zone = new Zone(id);
    zones.set(id, zone);
  }
  return zone;
}

/** A zone's offsets, asked of Intl once per year and then looked up. */
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
    let table = this.#tables.get(year);
    if (table === undefined) {
      if (this.#tables.size >= MAX_TABLES) this.#tables.clear();
      table = this.#build(year);
      this.#tables.set(year, table);
    }
    let i = table.length - 1;
    while (i > 0 && utc < table[i]!.start) i--;
    this.#recent = table[i]!;
    return this.#recent;
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
        // A second change may hide before `high`: look again from here.
        low = change;
        continue;
      }
      if (high === to - SECOND) break;
      low = high;
    }
    segments.push({ start, end: to, offset, before });
    if (year === FIRST_YEAR) segments[0] = { ...segments[0]!, start: Number.NEGATIVE_INFINITY };
    if (year === LAST_YEAR) segments.push({ ...segments.pop()!, end: Number.POSITIVE_INFINITY });
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

/** More than any offset, and more than any change of one: UTC-12 to UTC+14, and whole days at the date line. */
export const MAX_OFFSET = 16 * HOUR;
export const MAX_CHANGE = 25 * HOUR;

/** The first instant whose wall clock shows `local` or later: after a gap, and in an overlap's first pass. */
export function firstInstant(zone: Zone, local: number): number {
  let segment = zone.at(local - MAX_OFFSET);
  for (;;) {
    const time = Math.max(segment.start, local - segment.offset);
    if (time < segment.end) return time;
    segment = zone.at(segment.end);
  }
}
