import { membersOf, membersOfSixty } from "../fields/bits.js";
import { ALL_DAYS, ALL_WEEKDAYS, type DayRule, weekdaysOf } from "../fields/day-rule.js";
import type { Fields } from "../fields/fields.js";
import { clock, list, ordinal, ordinals, stepOf, values } from "./english.js";

const MONTHS = ["January", "February", "March", "April", "May", "June"].concat([
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
]);
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ALL_MONTHS = 0x1ffe;
/** Most times of day that a sentence names. */
const NAMED_TIMES = 6;

/** Describes sets of values in English: `at 09:00, Monday to Friday`. @param daysOnly without the times of day */
export function describeFields(fields: Fields, daysOnly = false): string {
  const parts = [daysOnly ? "" : times(fields), days(fields), months(fields.months), years(fields)];
  return parts.filter((part) => part !== "").join(", ");
}

function times(fields: Fields): string {
  const hours = membersOf(fields.hours);
  const minutes = membersOfSixty(fields.minutes);
  const seconds = membersOfSixty(fields.seconds);
  if (fields.subSeconds) return `at fractions of a second, ${withinText(minutes, hours)}`;
  if (hours.length * minutes.length * seconds.length <= NAMED_TIMES) {
    const all = hours.flatMap((h) => minutes.flatMap((m) => seconds.map((s) => clock(h, m, s))));
    return `at ${list(all)}`;
  }
  if (isZero(seconds)) return minuteText(minutes, hours);
  const step = stepOf(seconds, 60);
  // For every few seconds of every minute, the minutes are not mentioned.
  if (step !== undefined && minutes.length === 60) return `${everyText(step, "second")}${during(hours)}`;
  return `${step ? everyText(step, "second") : atText("second", seconds)}, ${withinText(minutes, hours)}`;
}

/** The minutes within which seconds are counted, listed because `every hour` would not say which minutes. */
function withinText(minutes: readonly number[], hours: readonly number[]): string {
  return isZero(minutes) ? pastText(minutes, hours) : minuteText(minutes, hours);
}

function minuteText(minutes: readonly number[], hours: readonly number[]): string {
  if (isZero(minutes)) {
    const step = stepOf(hours, 24);
    return step === undefined ? `on the hour, at hours ${values(hours)}` : everyText(step, "hour");
  }
  const step = stepOf(minutes, 60);
  if (step !== undefined) return `${everyText(step, "minute")}${during(hours)}`;
  return pastText(minutes, hours);
}

function pastText(minutes: readonly number[], hours: readonly number[]): string {
  const past = hours.length === 24 ? "every hour" : `hour${hours.length === 1 ? "" : "s"} ${values(hours)}`;
  return `${atText("minute", minutes)} of ${past}`;
}

function isZero(numbers: readonly number[]): boolean {
  return numbers.length === 1 && numbers[0] === 0;
}

function everyText(step: number, unit: string): string {
  return step === 1 ? `every ${unit}` : `every ${step} ${unit}s`;
}

function atText(unit: string, numbers: readonly number[]): string {
  return `at ${unit}${numbers.length === 1 ? "" : "s"} ${values(numbers)}`;
}

function during(hours: readonly number[]): string {
  return hours.length === 24 ? "" : ` during hour${hours.length === 1 ? "" : "s"} ${values(hours)}`;
}

function days({ days: rule }: Fields): string {
  const dom = datesText(rule);
  const dow = weekdaysText(rule);
  if (dom === "" || dow === "") {
    // With a union, "any day" on one side means any day.
    return rule.either ? "every day" : dom || dow || "every day";
  }
  return rule.either ? `${dom} and also ${dow}` : `${dow}, only ${dom}`;
}

/** Empty for any day. */
function datesText(rule: DayRule): string {
  if (rule.dom === ALL_DAYS) return "";
  const texts: string[] = [];
  const dates = membersOf(rule.dom).map((bit) => bit + 1);
  if (dates.length > 0) texts.push(`the ${ordinals(dates)}`);
  const back = membersOf(rule.fromEnd).map((bit) => bit + 1);
  if (back.includes(1)) texts.push("the last day");
  const others = back.filter((n) => n > 1);
  if (others.length > 0) texts.push(`the ${ordinals(others)} day from the end`);
  for (const bit of membersOf(rule.nearest)) texts.push(`the weekday nearest to the ${ordinal(bit + 1)}`);
  if (rule.lastWorkday) texts.push("the last weekday (Monday to Friday)");
  return `on ${list(texts)} of the month`;
}

/** Empty for any day. */
function weekdaysText(rule: DayRule): string {
  if (rule.dow === ALL_WEEKDAYS) return "";
  const texts = rule.dow === 0 ? [] : [runOfWeekdays(weekdaysOf(rule.dow))];
  for (let n = 1; n <= 5; n++) {
    const mask = n === 5 ? rule.fifth : (rule.nth >>> ((n - 1) * 7)) & ALL_WEEKDAYS;
    for (const day of weekdaysOf(mask)) texts.push(`the ${ordinal(n)} ${WEEKDAYS[day]} of the month`);
  }
  for (const day of weekdaysOf(rule.last)) texts.push(`the last ${WEEKDAYS[day]} of the month`);
  return `on ${list(texts)}`;
}

/** Monday first; three in a row and more become a range. */
function runOfWeekdays(weekdays: readonly number[]): string {
  const places = weekdays.map((day) => (day + 6) % 7);
  const first = places[0]!;
  const last = places.at(-1)!;
  if (places.length > 2 && last - first === places.length - 1)
    return `${WEEKDAYS[weekdays[0]!]} to ${WEEKDAYS[weekdays.at(-1)!]}`;
  return list(weekdays.map((day) => WEEKDAYS[day]!));
}

function months(mask: number): string {
  if ((mask & ALL_MONTHS) === ALL_MONTHS) return "";
  return `in ${list(membersOf(mask & ALL_MONTHS).map((month) => MONTHS[month - 1]!))}`;
}

function years({ years: set, firstYear }: Fields): string {
  if (set === undefined) return "";
  const all = [...set.keys()].filter((i) => set[i] === 1).map((i) => firstYear + i);
  return `in ${values(all)}`;
}
