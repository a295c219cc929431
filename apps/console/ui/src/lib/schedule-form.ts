import type { Draft } from "./definition.js";
import { isObject, same, wordsIn } from "./values.js";

/*
 * A form for schedules. The schedule's JSON is the only state: rows, days, times and exceptions are read from it and written to it. What a
 * view cannot show, it does not change; only what is edited is written anew.
 */

const KINDS = ["cron", "calendar", "every", "at", "manual"] as const;
export type Kind = (typeof KINDS)[number];
/** Fields of a member of a union, besides its limits. */
const OWN = new Set<string>([...KINDS, "timezone", "dst", "dialect", "origin", "anchor"]);

export function kindOf(row: Draft): Kind | undefined {
  return KINDS.find((kind) => Object.hasOwn(row, kind) && typeof row[kind] !== "object");
}

/** The members of a union, or the schedule's own fields as the only one. Undefined: they cannot be shown. */
export function rowsOf(schedule: Draft): Draft[] | undefined {
  const { any } = schedule;
  const rows = any === undefined ? [pick(schedule, (field) => OWN.has(field))] : any;
  return Array.isArray(rows) && rows.every((row) => isObject(row) && kindOf(row)) ? rows : undefined;
}

/** The schedule with other rows; one row that has only the fields of its kind needs no union. */
export function withRows(schedule: Draft, rows: readonly Draft[]): Draft {
  if (same(rowsOf(schedule), rows)) return schedule;
  const rest = pick(schedule, (field) => !OWN.has(field) && field !== "any");
  const [first] = rows;
  const isPlain = rows.length === 1 && first && Object.keys(first).every((field) => OWN.has(field));
  return isPlain ? { ...first, ...rest } : { any: rows, ...rest };
}

/** Whether another row can stand beside it. */
export function canJoin(row: Draft): boolean {
  return kindOf(row) !== "manual" && !Object.hasOwn(row, "anchor");
}

/** Days and times of the wall clock. At most one of `week` and `month` names days; without any, it is each day. */
export interface Pattern {
  /** Days of the week, 0 Monday, in their order. */
  readonly week: readonly number[];
  /** Days of the month, in their order. */
  readonly month: readonly number[];
  /** `09:00`, in their order; at least one. */
  readonly times: readonly string[];
}

const NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/** More times are not shown one by one. */
const MOST = 24;

/** Days and times of a cron expression or a calendar event. Undefined: it says more than these. */
export function patternOf(row: Draft): Pattern | undefined {
  const parts = typeof row["cron"] === "string" ? ofCron(row["cron"]) : ofCalendar(row["calendar"]);
  if (!parts?.week || !parts.month || !parts.hours || !parts.minutes) return undefined;
  const { week, month, hours, minutes } = parts;
  if (hours.length * minutes.length > MOST || (week.length > 0 && month.length > 0)) return undefined;
  const times = hours.flatMap((hour) => minutes.map((minute) => `${two(hour)}:${two(minute)}`));
  return { week: week.length === 7 ? [] : week, month, times };
}

/** Values in their order. Undefined: not a list of values. */
type Values = number[] | undefined;
interface Parts {
  week: Values;
  month: Values;
  hours: Values;
  minutes: Values;
}

function ofCron(text: string): Parts | undefined {
  const [minutes = "", hours = "", days = "", months, week = "", ...more] = text.trim().split(/\s+/);
  if (months !== "*" || more.length > 0) return undefined;
  const weekday = (word: string) => {
    const day = NAMES.indexOf(word.toLowerCase());
    return day < 0 ? numberOf(word, 0, 7) : day + 1;
  };
  const named = week === "*" ? [] : listOf(week, "-", weekday);
  return {
    minutes: listOf(minutes, "-", (word) => numberOf(word, 0, 59)),
    hours: listOf(hours, "-", (word) => numberOf(word, 0, 23)),
    month: days === "*" ? [] : listOf(days, "-", (word) => numberOf(word, 1, 31)),
    week: named && sorted(named.map((day) => (day + 6) % 7)),
  };
}

const EVENT = /^(?:([a-z][a-z.,]*) )?(?:\*-\*-(\*|[\d,.]+) )?([\d,.]+):([\d,.]+)(?::00)?$/i;

function ofCalendar(text: unknown): Parts | undefined {
  const [, week, days, hours = "", minutes = ""] =
    (typeof text === "string" && EVENT.exec(text.trim())) || [];
  if (hours === "") return undefined;
  const weekday = (word: string) => {
    const day = NAMES.indexOf(word.toLowerCase());
    return day < 0 ? undefined : day;
  };
  return {
    week: week === undefined ? [] : listOf(week, "..", weekday),
    month: days === undefined || days === "*" ? [] : listOf(days, "..", (word) => numberOf(word, 1, 31)),
    hours: listOf(hours, "..", (word) => numberOf(word, 0, 23)),
    minutes: listOf(minutes, "..", (word) => numberOf(word, 0, 59)),
  };
}

/** The values of `1,3-5`, in their order. */
function listOf(text: string, to: string, read: (word: string) => number | undefined): Values {
  const found: number[] = [];
  for (const part of text.split(",")) {
    const [from, end, ...more] = part.split(to).map(read);
    const last = part.includes(to) ? end : from;
    if (from === undefined || last === undefined || more.length > 0 || !(from <= last)) return undefined;
    for (let value = from; value <= last; value++) found.push(value);
  }
  return sorted(found);
}

function numberOf(word: string, least: number, most: number): number | undefined {
  const value = /^\d{1,2}$/.test(word) ? Number(word) : -1;
  return value >= least && value <= most ? value : undefined;
}

/**
 * The row with other days and times, in its own language. Times that are not each of some hours with each of some minutes become several
 * rows.
 */
export function withPattern<Row extends Draft>(row: Row, { week, month, times }: Pattern): Row[] {
  const hoursOf = new Map<number, number[]>();
  for (const time of sortedTexts(times)) {
    const [hour = 0, minute = 0] = time.split(":").map(Number);
    hoursOf.set(minute, [...(hoursOf.get(minute) ?? []), hour]);
  }
  const groups = new Map<string, { hours: number[]; minutes: number[] }>();
  for (const [minute, hours] of hoursOf) {
    const group = groups.get(hours.join()) ?? { hours, minutes: [] };
    group.minutes.push(minute);
    groups.set(hours.join(), group);
  }
  return [...groups.values()].map(({ hours, minutes }) => {
    const parts = { week: [...week], month: [...month], hours, minutes: minutes.sort((a, b) => a - b) };
    return Object.hasOwn(row, "cron")
      ? { ...row, cron: cronText(parts) }
      : { ...row, calendar: eventText(parts) };
  });
}

function cronText({ week, month, hours, minutes }: Required<{ [K in keyof Parts]: number[] }>): string {
  const days = week.map((day) => (day + 1) % 7).sort((a, b) => a - b);
  const text = (values: number[]) => ranges(values, "-", String) || "*";
  return [text(minutes), text(hours), text(month), "*", text(days)].join(" ");
}

function eventText({ week, month, hours, minutes }: Required<{ [K in keyof Parts]: number[] }>): string {
  const title = (day: number) => `${NAMES[day]?.[0]?.toUpperCase()}${NAMES[day]?.slice(1)}`;
  const time = [hours, minutes].map((values) => ranges(values, "..", two)).join(":");
  return [ranges(week, "..", title), `*-*-${ranges(month, "..", two) || "*"}`, time]
    .filter(Boolean)
    .join(" ");
}

/** Three values in a row and more become a range. */
function ranges(values: readonly number[], to: string, text: (value: number) => string): string {
  const texts: string[] = [];
  for (let i = 0; i < values.length; i++) {
    const from = values[i] as number;
    let end = i;
    while (values[end + 1] === (values[end] as number) + 1) end++;
    if (end < i + 2) texts.push(text(from));
    else {
      texts.push(`${text(from)}${to}${text(values[end] as number)}`);
      i = end;
    }
  }
  return texts.join(",");
}

/** Times as typed: `9:00, 17:30`. Undefined: there is none, or something else. */
export function timesIn(text: string): string[] | undefined {
  const words = wordsIn(text);
  const isTime = (word: string) => /^([01]?\d|2[0-3]):[0-5]\d$/.test(word);
  if (words.length === 0 || words.length > MOST || !words.every(isTime)) return undefined;
  return sortedTexts(words.map((word) => word.padStart(5, "0")));
}

/** Days of the month as typed: `1, 15`; none: each day. Undefined: something else. */
export function daysIn(text: string): number[] | undefined {
  const days = wordsIn(text).map((word) => numberOf(word, 1, 31));
  return days.every((day): day is number => day !== undefined) ? sorted(days) : undefined;
}

/** An exception that only names a shared calendar. */
export function namedIn(exception: unknown): string | undefined {
  return isObject(exception) && same(Object.keys(exception), ["named"])
    ? String(exception["named"])
    : undefined;
}

/** The shared calendars that a schedule names, in its members too. */
export function namesIn(schedule: unknown): string[] {
  if (!isObject(schedule)) return [];
  const members = Array.isArray(schedule["any"]) ? schedule["any"] : [];
  return [
    ...exceptionsOf(schedule).flatMap((one) =>
      isObject(one) && typeof one["named"] === "string" ? [one["named"]] : [],
    ),
    ...members.flatMap(namesIn),
  ];
}

export function exceptionsOf({ except }: Draft): readonly unknown[] {
  return Array.isArray(except) ? except : [];
}

export function withExceptions(schedule: Draft, except: readonly unknown[]): Draft {
  return except.length > 0 ? { ...schedule, except } : pick(schedule, (field) => field !== "except");
}

function pick(of: Draft, test: (field: string) => boolean): Draft {
  return Object.fromEntries(Object.entries(of).filter(([field]) => test(field)));
}

function sorted(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function sortedTexts(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
