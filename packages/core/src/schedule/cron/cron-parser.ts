import { quote } from "../../errors.js";
import { type CronFieldKind, type CronItem, cronFault, DAY_FIELD, WEEKDAY_FIELD } from "./item.js";

/*
 * The dialect of cron-parser, with which BullMQ computes. It has its own day rule (only a bare `*` or `?` is no
 * restriction), its own DST rule (`zone/landing.ts`) and less syntax. What the library accepts by accident (`5`, `5*`,
 * `1-5-9`) is refused too.
 */

export const CRON_PARSER_MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@hourly": "0 * * * *",
  "@minutely": "* * * * *",
  "@secondly": "* * * * * *",
  "@weekdays": "0 0 * * 1-5",
  "@weekends": "0 0 * * 0,6",
};

const NAME = "(?:\\d{1,9}|[A-Za-z]{3})";
const PLAIN = new RegExp(`^(?:[*?]|${NAME}(?:-${NAME})?)(?:/\\d{1,9})?$`);

/**
 * Refuses an entry that our syntax allows and cron-parser does not.
 * @throws `INVALID_SCHEDULE`
 */
export function requireCronParserItem(item: string, field: CronFieldKind, alone: boolean): void {
  const where = `${quote(item)} in the ${field.name} field is not for dialect cron-parser`;
  if (/^h/i.test(item)) {
    throw cronFault(
      `${where}, which draws H at random.`,
      "Leave out the dialect: H is then stable for each task.",
    );
  }
  if (PLAIN.test(item)) {
    const toSunday = field === WEEKDAY_FIELD && /-(?:0+|sun)(?:\/|$)/i.test(item);
    if (!toSunday || /^(?:0+|sun)-/i.test(item)) return;
    throw cronFault(`${where}: Sunday ends a range as 7.`, "Write 7 for Sunday, 6-7.");
  }
  if (field === DAY_FIELD && item === "L") return;
  if (field === WEEKDAY_FIELD && /^(?:\d|[A-Za-z]{3})L$/.test(item)) return;
  if (field === WEEKDAY_FIELD && /^(?:\d|[A-Za-z]{3})#\d$/.test(item)) {
    if (alone) return;
    throw cronFault(
      `${where}: # cannot be part of a list there.`,
      "Write a union: any, with one schedule for each.",
    );
  }
  if (field === DAY_FIELD && /W/i.test(item))
    throw cronFault(`${where}, which has no W.`, "Leave out the dialect.");
  throw cronFault(`${where}.`, "Use numbers, names, *, ranges such as 1-5, steps such as */2, L and #.");
}

/**
 * Refuses a value that occurs in two entries of a list, as cron-parser does.
 * @throws `INVALID_SCHEDULE`
 */
export function requireDistinct(items: readonly CronItem[], field: CronFieldKind): void {
  const seen = new Set<string | number>();
  for (const item of items) {
    const values = new Set<string | number>(item.kind === "range" ? [] : [item.text]);
    if (item.kind === "range") {
      for (let n = item.from; n <= item.to; n += item.step) values.add(field === WEEKDAY_FIELD ? n % 7 : n);
    }
    for (const value of values) {
      if (!seen.has(value)) continue;
      const what = `The ${field.name} field has ${value} twice, which dialect cron-parser refuses.`;
      throw cronFault(what, "Name each value once.");
    }
    for (const value of values) seen.add(value);
  }
}
