import { hasBit, nextBit, prevBit } from "./bits.js";
import { civilFromDays, daysFromCivil, daysInMonth } from "./civil.js";
import { ALL_DAYS, daysMatching } from "./days.js";
import type { Fields } from "./fields.js";

/** Local days, counted since 1970-01-01. */
export interface DaySet {
  has(day: number): boolean;
  /** The first day after one, and the last before one, that is not in the set; infinite where all are. */
  freeAfter(day: number): number;
  freeBefore(day: number): number;
}

/** Single dates. */
export class Dates implements DaySet {
  readonly #days: ReadonlySet<number>;

  constructor(days: ReadonlySet<number>) {
    this.#days = days;
  }

  has(day: number): boolean {
    return this.#days.has(day);
  }

  freeAfter(day: number): number {
    while (this.#days.has(day)) day++;
    return day;
  }

  freeBefore(day: number): number {
    while (this.#days.has(day)) day--;
    return day;
  }
}

/** Day rules repeat after 400 years exactly: days that are all in the set for so long are so for ever. */
const CYCLE = 400;

/** The days of a cron or calendar expression, whatever its times of day. */
export class FieldDays implements DaySet {
  readonly #fields: Fields;

  constructor(fields: Fields) {
    this.#fields = fields;
  }

  has(day: number): boolean {
    const date = civilFromDays(day);
    return hasBit(this.#ofMonth(Math.floor(date / 512), (date >> 5) & 15), (date & 31) - 1);
  }

  freeAfter(day: number): number {
    const date = civilFromDays(day);
    let [year, month, from] = [Math.floor(date / 512), (date >> 5) & 15, date & 31];
    for (const end = year + CYCLE; year <= end; from = 0) {
      const free = nextBit(~this.#ofMonth(year, month) & ALL_DAYS, from);
      if (free >= 0 && free < daysInMonth(year, month)) return daysFromCivil(year, month, free + 1);
      if (++month > 12) [year, month] = [year + 1, 1];
    }
    return Number.POSITIVE_INFINITY;
  }

  freeBefore(day: number): number {
    const date = civilFromDays(day);
    let [year, month, to] = [Math.floor(date / 512), (date >> 5) & 15, (date & 31) - 2];
    for (const end = year - CYCLE; year >= end; to = daysInMonth(year, month) - 1) {
      const free = prevBit(~this.#ofMonth(year, month) & ALL_DAYS, to);
      if (free >= 0) return daysFromCivil(year, month, free + 1);
      if (--month < 1) [year, month] = [year - 1, 12];
    }
    return Number.NEGATIVE_INFINITY;
  }

  #ofMonth(year: number, month: number): number {
    const fields = this.#fields;
    if (year < fields.firstYear || year > fields.lastYear || !hasBit(fields.months, month)) return 0;
    if (fields.years !== undefined && fields.years[year - fields.firstYear] !== 1) return 0;
    return daysMatching(fields.days, year, month);
  }
}
