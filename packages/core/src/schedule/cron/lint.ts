import type { Warn } from "../kinds/kind.js";
import {
  type CronFieldKind,
  DAY_FIELD,
  HOUR_FIELD,
  MINUTE_FIELD,
  MONTH_FIELD,
  SECOND_FIELD,
  WEEKDAY_FIELD,
} from "./item.js";

/** The fields of an expression, of which each is followed by the next larger one. */
const FIELDS = [SECOND_FIELD, MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, WEEKDAY_FIELD];
const UNITS = ["second", "minute", "hour", "day", "month", "weekday"];
const NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const STEP = /^(\*|\d+)\/(\d+)$/;
/** Steps up to a quarter of the field are taken for meant, although their last gap is shorter. */
const PARTS = 4;

/** Warns about a valid expression whose author probably meant another. @param text without macros, one space between fields */
export function lintFields(text: string, warn: Warn): void {
  const given = text.split(" ");
  const fields = given.length === 5 ? ["0", ...given] : given;
  if (fields.length !== 6) return;
  for (const [i, field] of fields.entries()) lintStep(field, i, fields, warn);
  lintQuartz(fields, warn);
}

function lintStep(field: string, i: number, fields: readonly string[], warn: Warn): void {
  const [, first, stepText] = STEP.exec(field) ?? [];
  if (stepText === undefined) return;
  const { name, min, max } = FIELDS[i]!;
  const size = (name === WEEKDAY_FIELD.name ? 6 : max) - min + 1;
  const [from, step] = [first === "*" ? min : Number(first), Number(stepText)];
  const values = Math.floor((min + size - 1 - from) / step) + 1;
  /** From the last value to the first one of the next round. */
  const last = size - (values - 1) * step;
  if (last === step) return;
  if (values === 1) {
    const message = `The step of ${field} in the ${name} field leaves one value: it is not every ${step} ${UNITS[i]}s.`;
    warn("STEP_ONE_VALUE", message, insteadOf(step, i, from));
  } else if (goesRound(i, fields) && isUneven(FIELDS[i]!, step, last, size)) {
    const months = name === DAY_FIELD.name ? " or less" : "";
    const message = `${field} in the ${name} field starts again each ${UNITS[i + 1]}: its last gap is ${last}${months}, not ${step}.`;
    warn("STEP_UNEVEN", message, insteadOf(step, i, from));
  }
}

/** Whether the next larger field has several values, so that the last value is followed by the first one. */
function goesRound(i: number, fields: readonly string[]): boolean {
  const [, , , days, months, weekdays] = fields;
  const any = (field: string | undefined) => field === "*" || field === "?";
  if (FIELDS[i] === WEEKDAY_FIELD) return false;
  if (FIELDS[i] === MONTH_FIELD) return true;
  if (FIELDS[i] === DAY_FIELD) return any(months) && any(weekdays);
  if (FIELDS[i] === HOUR_FIELD) return any(days) && any(weekdays);
  return !/^\d+$/.test(fields[i + 1]!);
}

function isUneven(field: CronFieldKind, step: number, last: number, size: number): boolean {
  // Months differ in length: only a gap that is much shorter is surely not meant.
  return field === DAY_FIELD ? step >= 7 && last * 2 <= step : step * PARTS > size;
}

function insteadOf(step: number, i: number, from: number): string {
  const every = [`${step}s`, `${step}m`, `${step}h`, `${step} days`, `${step} months`][i];
  if (every === undefined) return "Write the weekdays by their names.";
  return `For each ${step} ${UNITS[i]}s, use { every: "${every}" }; for this one rhythm, list the values, such as ${from}.`;
}

/** Warns about numbers of weekdays that Quartz, which has `?`, counts from 1. */
function lintQuartz(fields: readonly string[], warn: Warn): void {
  const weekdays = fields.at(-1)!;
  const numbers = [...weekdays.matchAll(/(?<![/#\d])\d+/g)].map(([number]) => Number(number));
  if (!fields.includes("?") || numbers.length === 0 || numbers.some((number) => number < 1)) return;
  const named = weekdays.replace(/(?<![/#\d])\d+/g, (number) => NAMES[Number(number) - 1]!);
  const message = `Weekday ${numbers[0]} is ${NAMES[numbers[0]! % 7]} here; in Quartz, where ? comes from, it is ${NAMES[numbers[0]! - 1]}.`;
  warn("QUARTZ_WEEKDAYS", message, `Write names: ${named} for the days of Quartz.`);
}
