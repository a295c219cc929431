import { civilFromDays, daysFromCivil, daysInMonth } from "../civil.js";
import { hasBit, nextBit, prevBit } from "../fields/bits.js";
import { ALL_DAYS, isEveryDay } from "../fields/day-rule.js";
import { daysOf, type Fields } from "../fields/fields.js";

const ALL_MONTHS = 0x1ffe;
/** Most months whose days a calendar caches. */
const MAX_KEPT = 1_200;
/** Day rules repeat after exactly 400 years: if all days of 400 years are in a set, all later ones are too. */
const CYCLE = 400;
/** Most single months that one leap checks. */
const MAX_MONTHS = 24;

/** Local days, counted since 1970-01-01. */
export interface DaySet {
  /** Whether it contains every day. */
  readonly all: boolean;
  /** The days of a month that are in the set, the 1st in bit 0. */
  ofMonth(year: number, month: number): number;
  /** Whether each day of a year is known to be in the set, without a check of its months. */
  hasYear(year: number): boolean;
}

/** The days of a cron or calendar expression, regardless of its times of day. */
export class FieldDays implements DaySet {
  readonly all: boolean;
  readonly #allDays: boolean;
  /** The month that was read last: the next call is mostly for the same one. */
  #month = { key: Number.NaN, days: 0 };

  constructor(private readonly fields: Fields) {
    this.#allDays = isEveryDay(fields.days) && (fields.months & ALL_MONTHS) === ALL_MONTHS;
    this.all = this.#allDays && fields.years === undefined;
  }

  ofMonth(year: number, month: number): number {
    const key = monthKey(year, month);
    if (key !== this.#month.key) this.#month = { key, days: daysOf(this.fields, year, month) };
    return this.#month.days;
  }

  hasYear(year: number): boolean {
    return this.#allDays && daysOf(this.fields, year, 1) !== 0;
  }
}

/** A number for each month. */
export function monthKey(year: number, month: number): number {
  return year * 12 + month;
}

/** Single dates and the days of expressions. */
export class CalendarDays implements DaySet {
  readonly all: boolean;
  readonly #months = new Map<number, number>();

  /** @param dates their days as bits, by `monthKey` */
  constructor(
    private readonly dates: ReadonlyMap<number, number>,
    private readonly rules: readonly DaySet[],
  ) {
    this.all = rules.some((rule) => rule.all);
  }

  ofMonth(year: number, month: number): number {
    const key = monthKey(year, month);
    let days = this.#months.get(key);
    if (days === undefined) {
      days = this.rules.reduce((all, rule) => all | rule.ofMonth(year, month), this.dates.get(key) ?? 0);
      if (this.#months.size >= MAX_KEPT) this.#months.clear();
      this.#months.set(key, days);
    }
    return days;
  }

  hasYear(year: number): boolean {
    return this.rules.some((rule) => rule.hasYear(year));
  }
}

export function hasDay(set: DaySet, day: number): boolean {
  if (set.all) return true;
  const date = civilFromDays(day);
  return hasBit(set.ofMonth(Math.floor(date / 512), (date >> 5) & 15), (date & 31) - 1);
}

/**
 * The first later day outside of the set. If that is too far away to search, a later day up to which all days are in
 * the set. Infinite if all later days are in it.
 */
export function leapAfter(set: DaySet, day: number): number {
  if (set.all) return Number.POSITIVE_INFINITY;
  const date = civilFromDays(day);
  let [year, month, from] = [Math.floor(date / 512), (date >> 5) & 15, date & 31];
  for (let n = 0; n < MAX_MONTHS; n++, from = 0) {
    const free = nextBit(~set.ofMonth(year, month) & ALL_DAYS, from);
    if (free >= 0 && free < daysInMonth(year, month)) return daysFromCivil(year, month, free + 1);
    if (++month <= 12) continue;
    [year, month] = [year + 1, 1];
    for (const end = year + CYCLE; set.hasYear(year); ) if (++year > end) return Number.POSITIVE_INFINITY;
  }
  return daysFromCivil(year, month, 1);
}

/** The same towards the past. */
export function leapBefore(set: DaySet, day: number): number {
  if (set.all) return Number.NEGATIVE_INFINITY;
  const date = civilFromDays(day);
  let [year, month, to] = [Math.floor(date / 512), (date >> 5) & 15, (date & 31) - 2];
  for (let n = 0; n < MAX_MONTHS; n++, to = daysInMonth(year, month) - 1) {
    const free = prevBit(~set.ofMonth(year, month) & ALL_DAYS, to);
    if (free >= 0) return daysFromCivil(year, month, free + 1);
    if (--month >= 1) continue;
    [year, month] = [year - 1, 12];
    for (const end = year - CYCLE; set.hasYear(year); ) if (--year < end) return Number.NEGATIVE_INFINITY;
  }
  return daysFromCivil(year, month, daysInMonth(year, month));
}
