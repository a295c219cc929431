import { CarillonError, quote } from "../../errors.js";

export interface CronFieldKind {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Lower case, in order; the first stands for `namesFrom`. */
  readonly names?: readonly string[];
  readonly namesFrom?: number;
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

export const SECOND_FIELD: CronFieldKind = { name: "second", min: 0, max: 59 };
export const MINUTE_FIELD: CronFieldKind = { name: "minute", min: 0, max: 59 };
export const HOUR_FIELD: CronFieldKind = { name: "hour", min: 0, max: 23 };
export const DAY_FIELD: CronFieldKind = { name: "day-of-month", min: 1, max: 31 };
export const MONTH_FIELD: CronFieldKind = { name: "month", min: 1, max: 12, names: MONTHS, namesFrom: 1 };
/** Both 0 and 7 are Sunday. */
export const WEEKDAY_FIELD: CronFieldKind = {
  name: "day-of-week",
  min: 0,
  max: 7,
  names: WEEKDAYS,
  namesFrom: 0,
};

/** One entry of a cron list, as numbers: `from-to/step`, or one of the forms only days have. */
export type CronItem =
  | {
      readonly kind: "range";
      readonly from: number;
      readonly to: number;
      readonly step: number;
      readonly text: string;
    }
  | { readonly kind: "last"; readonly text: string }
  | { readonly kind: "last-workday"; readonly text: string }
  | { readonly kind: "nearest"; readonly day: number; readonly text: string }
  | { readonly kind: "nth"; readonly weekday: number; readonly n: number; readonly text: string }
  | { readonly kind: "last-weekday"; readonly weekday: number; readonly text: string };

/** A stable number for `H`: which of `count` values a seed gets in a field. */
export type CronHash = (field: string, count: number) => number;

const RANGE = /^(\*|[A-Za-z]+|\d{1,9})(?:-([A-Za-z]+|\d{1,9}))?(?:\/(\d{1,9}))?$/;
const HASHED = /^[Hh](?:\((\d{1,4})-(\d{1,4})\))?(?:\/(\d{1,9}))?$/;
const NTH = /^([A-Za-z]{3}|\d)#(\d)$/;
const LAST_WEEKDAY = /^([A-Za-z]{3}|\d)[Ll]$/;

export function cronFault(what: string, remedy?: string): CarillonError {
  return new CarillonError("INVALID_SCHEDULE", what, {
    field: "schedule.cron",
    ...(remedy ? { remedy } : {}),
  });
}

/** @throws `INVALID_SCHEDULE` */
export function parseItem(item: string, field: CronFieldKind, hash: CronHash): CronItem {
  if (item === "") throw cronFault(`The ${field.name} field has an empty entry.`, "Remove the stray comma.");
  if (item === "?") {
    if (field !== DAY_FIELD && field !== WEEKDAY_FIELD)
      throw cronFault(`? is not allowed in the ${field.name} field.`, "Write * for any value.");
    return { kind: "range", from: field.min, to: field.max, step: 1, text: "*" };
  }
  const special =
    field === DAY_FIELD ? daySpecial(item) : field === WEEKDAY_FIELD ? weekdaySpecial(item) : undefined;
  if (special) return special;
  const hashed = HASHED.exec(item);
  if (hashed) return hashItem(hashed, item, field, hash);
  const match = RANGE.exec(item);
  if (!match) throw unreadable(item, field);
  return rangeItem(match, item, field);
}

function rangeItem(match: RegExpExecArray, item: string, field: CronFieldKind): CronItem {
  const [, first = "", last, stepText] = match;
  const step = stepText === undefined ? 1 : Number(stepText);
  if (step === 0)
    throw cronFault(
      `The step of ${quote(item)} in the ${field.name} field is 0.`,
      "Use a step of at least 1.",
    );
  const end = stepText === undefined ? "" : `/${step}`;
  if (first === "*") {
    if (last !== undefined) throw unreadable(item, field);
    return { kind: "range", from: field.min, to: field.max, step, text: `*${end}` };
  }
  const from = readValue(first, field);
  if (last === undefined) {
    // `5/15` starts at 5 and goes on to the end of the field.
    const to = stepText === undefined ? from : field.max;
    return { kind: "range", from, to, step, text: `${from}${end}` };
  }
  let to = readValue(last, field);
  // `SAT-SUN`: at the end of a range Sunday is the seventh day.
  if (field === WEEKDAY_FIELD && to === 0 && from > 0) to = 7;
  if (from > to) {
    const top = field === WEEKDAY_FIELD ? 6 : field.max;
    const remedy =
      from > top
        ? `Sunday comes first: ${field.min}-${to}.`
        : `Write it as two: ${from}-${top},${field.min}-${to}.`;
    throw cronFault(`The range ${quote(item)} in the ${field.name} field is reversed.`, remedy);
  }
  return { kind: "range", from, to, step, text: `${from}-${to}${end}` };
}

function daySpecial(item: string): CronItem | undefined {
  if (/^L$/i.test(item)) return { kind: "last", text: "L" };
  const [, before] = /^L-(\d{1,2})$/i.exec(item) ?? [];
  if (before !== undefined) {
    throw cronFault(
      `${quote(item)} is not a value of the ${DAY_FIELD.name} field.`,
      `Days before the last one are for calendar schedules: *-*~${String(Number(before) + 1).padStart(2, "0")}.`,
    );
  }
  if (/^(?:LW|WL)$/i.test(item)) return { kind: "last-workday", text: "LW" };
  const nearest = /^(\d{1,2})W$/i.exec(item);
  if (!nearest) return undefined;
  const day = readValue(nearest[1]!, DAY_FIELD);
  return { kind: "nearest", day, text: `${day}W` };
}

function weekdaySpecial(item: string): CronItem | undefined {
  const nth = NTH.exec(item);
  if (nth) {
    const weekday = readValue(nth[1]!, WEEKDAY_FIELD) % 7;
    const n = Number(nth[2]);
    if (n < 1 || n > 5)
      throw cronFault(`${quote(item)} asks for weekday number ${n} of a month.`, "Use #1 to #5.");
    return { kind: "nth", weekday, n, text: `${weekday}#${n}` };
  }
  if (/^L$/i.test(item)) {
    throw cronFault(
      "L alone in the day-of-week field is ambiguous.",
      "Write 5L for the last Friday of the month.",
    );
  }
  const last = LAST_WEEKDAY.exec(item);
  if (!last) return undefined;
  const weekday = readValue(last[1]!, WEEKDAY_FIELD) % 7;
  return { kind: "last-weekday", weekday, text: `${weekday}L` };
}

/** Resolves `H`, `H(0-29)`, `H/15`, `H(0-29)/10`: each seed has its own values, always the same. */
function hashItem(match: RegExpExecArray, item: string, field: CronFieldKind, hash: CronHash): CronItem {
  const [, low, high, stepText] = match;
  // Every month has 28 days, and weekday 7 is weekday 0 again.
  const top = field === DAY_FIELD ? 28 : field === WEEKDAY_FIELD ? 6 : field.max;
  const from = low === undefined ? field.min : readValue(low, field);
  const to = high === undefined ? top : readValue(high, field);
  const step = stepText === undefined ? 0 : Number(stepText);
  if (from > to) throw cronFault(`The range of ${quote(item)} in the ${field.name} field is reversed.`);
  if (stepText !== undefined && step === 0)
    throw cronFault(`The step of ${quote(item)} is 0.`, "Use a step of at least 1.");
  if (step > to - from + 1) {
    throw cronFault(
      `The step of ${quote(item)} is larger than its range.`,
      `Use a step of at most ${to - from + 1}.`,
    );
  }
  if (step === 0) {
    const value = from + hash(field.name, to - from + 1);
    return { kind: "range", from: value, to: value, step: 1, text: `${value}` };
  }
  const start = from + hash(field.name, step);
  return { kind: "range", from: start, to, step, text: `${start}-${to}/${step}` };
}

function readValue(text: string, field: CronFieldKind): number {
  if (/^\d/.test(text)) {
    const value = Number(text);
    if (value >= field.min && value <= field.max) return value;
    throw cronFault(
      `${quote(text)} is out of range in the ${field.name} field.`,
      `Use ${field.min} to ${field.max}.`,
    );
  }
  const index = field.names?.indexOf(text.toLowerCase()) ?? -1;
  if (index >= 0) return index + field.namesFrom!;
  const near = field.names?.find((name) => text.toLowerCase().startsWith(name));
  throw cronFault(
    `${quote(text)} is not a value of the ${field.name} field.`,
    near
      ? `Did you mean ${near.toUpperCase()}?`
      : field.names
        ? `Use ${field.min} to ${field.max}, or ${field.names[0]!.toUpperCase()} to ${field.names.at(-1)!.toUpperCase()}.`
        : `Use ${field.min} to ${field.max}.`,
  );
}

function unreadable(item: string, field: CronFieldKind): CarillonError {
  const what = `${quote(item)} is not a value of the ${field.name} field.`;
  if (/^\/\d+$/.test(item)) return cronFault(what, `Did you mean *${item}?`);
  if (/^\*\d+$/.test(item)) return cronFault(what, `Did you mean */${item.slice(1)}?`);
  return cronFault(
    what,
    `Use ${field.min} to ${field.max}, *, ranges such as 1-5, steps such as */2, or lists of these.`,
  );
}
