import { CarillonError, quote } from "../../errors.js";
import { civilFromDays, DAY, daysFromCivil, daysInMonth, MAX_TIME, modulo } from "../civil.js";
import { MAX_DURATION } from "../text/duration.js";
import { grainOf } from "../timetable.js";
import type { CompiledSchedule } from "../types.js";
import { firstInstant, type Zone } from "../zone/offsets.js";

/** An interval of the calendar: whole months, or whole days. */
export interface CalendarStep {
  readonly unit: "month" | "day";
  readonly count: number;
}

const WORDS = /^(\d{1,6}) (day|week|month|year)s?$/;
const ISO = /^P(?=\d)(?:(\d{1,6})Y)?(?:(\d{1,6})M)?$/;
const MAX_DAYS = MAX_DURATION / DAY;
const MAX_MONTHS = 120;

/**
 * `1 month`, `2 weeks`, `P1Y6M`; undefined for anything else, which may be a duration.
 * @throws `INVALID_DURATION` for zero and for more than ten years
 */
export function parseCalendarStep(text: string, field: string): CalendarStep | undefined {
  if (typeof text !== "string" || text.length > 64) return undefined;
  const step = read(text);
  if (step === undefined) return undefined;
  const fault = (what: string, remedy: string) =>
    new CarillonError("INVALID_DURATION", `${quote(text)} ${what}`, { field, remedy });
  if (step.count === 0) throw fault("is zero.", "Give an interval of at least 1 day.");
  if (step.count > (step.unit === "day" ? MAX_DAYS : MAX_MONTHS))
    throw fault("is longer than ten years.", "Give a shorter interval.");
  return step;
}

function read(text: string): CalendarStep | undefined {
  const words = WORDS.exec(text);
  if (words) {
    const count = Number(words[1]);
    if (words[2] === "day" || words[2] === "week")
      return { unit: "day", count: words[2] === "week" ? count * 7 : count };
    return { unit: "month", count: words[2] === "year" ? count * 12 : count };
  }
  const iso = ISO.exec(text);
  return iso ? { unit: "month", count: Number(iso[1] ?? 0) * 12 + Number(iso[2] ?? 0) } : undefined;
}

/** The largest unit that needs no fraction: `18 months`, `1 year`, `2 weeks`. */
export function formatCalendarStep({ unit, count }: CalendarStep): string {
  const [size, larger] = unit === "month" ? [12, "year"] : [7, "week"];
  const [n, name] = count % size === 0 ? [count / size, larger] : [count, unit];
  return `${n} ${name}${n === 1 ? "" : "s"}`;
}

/**
 * The origin, and then its wall clock time after each step. Every occurrence is counted from the origin, never from the
 * previous one: 31 January and monthly gives the last day of February and then 31 March. A time that the zone skips
 * happens at the first instant after the gap, one that comes twice in its first pass.
 */
export class CalendarInterval implements CompiledSchedule {
  readonly origin: number;
  /** The time of day in ms, except for times that a gap moves. */
  readonly #time: number;
  /** The origin's date in days and months since 1970, and its day of the month. */
  readonly #day: number;
  readonly #month: number;
  readonly #date: number;

  /** @param origin undefined: 1970-01-01T00:00 on the zone's clock */
  constructor(
    private readonly step: CalendarStep,
    origin: number | undefined,
    private readonly zone: Zone | undefined,
  ) {
    const wall = origin === undefined ? 0 : this.#wall(origin);
    this.origin = origin ?? this.#instant(0);
    this.#day = Math.floor(wall / DAY);
    this.#time = wall - this.#day * DAY;
    this.#month = monthOf(this.#day);
    this.#date = civilFromDays(this.#day) & 31;
  }

  get grain(): number {
    return grainOf(this.#time);
  }

  next(after: number): number | undefined {
    if (Number.isNaN(after)) return undefined;
    if (after < this.origin) return this.origin;
    if (after >= MAX_TIME) return undefined;
    let k = Math.max(this.#steps(after) - 1, 0);
    while (this.#at(k) <= after) k++;
    const time = this.#at(k);
    return time <= MAX_TIME ? time : undefined;
  }

  latest(at: number): number | undefined {
    if (!(at >= this.origin)) return undefined;
    const to = Math.min(at, MAX_TIME);
    let k = this.#steps(to) + 2;
    while (k > 0 && this.#at(k) > to) k--;
    return this.#at(Math.max(k, 0));
  }

  /** Approximate number of steps between the origin and a time. */
  #steps(time: number): number {
    const day = Math.floor(this.#wall(time) / DAY);
    const units = this.step.unit === "day" ? day - this.#day : monthOf(day) - this.#month;
    return Math.floor(units / this.step.count);
  }

  #at(k: number): number {
    if (k === 0) return this.origin;
    if (this.step.unit === "day") return this.#instant((this.#day + k * this.step.count) * DAY + this.#time);
    const months = this.#month + k * this.step.count;
    const year = 1970 + Math.floor(months / 12);
    const month = modulo(months, 12) + 1;
    const date = Math.min(this.#date, daysInMonth(year, month));
    return this.#instant(daysFromCivil(year, month, date) * DAY + this.#time);
  }

  #wall(utc: number): number {
    return this.zone === undefined ? utc : utc + this.zone.at(utc).offset;
  }

  #instant(local: number): number {
    return this.zone === undefined ? local : firstInstant(this.zone, local);
  }
}

/** Months since January 1970. */
export function monthOf(day: number): number {
  const date = civilFromDays(day);
  return (Math.floor(date / 512) - 1970) * 12 + ((date >> 5) & 15) - 1;
}
