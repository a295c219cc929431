import { quote } from "../../errors.js";
import { ALL_HOURS, sixty } from "../fields/bits.js";
import { ALL_DAYS, ALL_WEEKDAYS, type DayRule, everyDay } from "../fields/day-rule.js";
import type { Fields } from "../fields/fields.js";
import { hashOf } from "../hash.js";
import { nearestDuration } from "../text/duration.js";
import type { CronDialect } from "../types.js";
import { BY_HOUR, type DstRule, ELAPSED, FIXED } from "../zone/dst.js";
import { knownZone } from "../zone/names.js";
import { CRON_PARSER_MACROS, requireCronParserItem, requireDistinct } from "./cron-parser.js";
import {
  type CronFieldKind,
  type CronHash,
  type CronItem,
  cronFault,
  DAY_FIELD,
  HOUR_FIELD,
  MINUTE_FIELD,
  MONTH_FIELD,
  parseItem,
  SECOND_FIELD,
  WEEKDAY_FIELD,
} from "./item.js";

/*
 * Cron by cronie's rules, or in the dialect of cron-parser. Has its own parser, because cron-parser accepts '', '5' and
 * '* *' as every-minute schedules, refuses valid lists (`0,7`, `1,1-3`), and does not report whether a field started
 * with `*`, on which both the day rule and the DST rule of cronie depend.
 */

export interface ParsedCron {
  readonly fields: Fields;
  readonly rule: DstRule;
  /** Numbers for names, `H` resolved, macros expanded, seconds left out when they are 0. */
  readonly canonical: string;
  /** Both day fields are restricted and neither starts with `*`: a day needs only one of them. */
  readonly either: boolean;
}

const MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
const KINDS = [SECOND_FIELD, MINUTE_FIELD, HOUR_FIELD, DAY_FIELD, MONTH_FIELD, WEEKDAY_FIELD];

/** Bounds every search; nothing fires outside of them. */
const CRON_YEARS = { firstYear: 1900, lastYear: 9_999 } as const;

interface ParsedField {
  readonly items: readonly CronItem[];
  /**
   * Whether the field counts as unrestricted: for cronie by its first character, for cron-parser by the whole field;
   * never by its set of values.
   */
  readonly star: boolean;
  readonly text: string;
}

/** Parsed expressions: a put reads each several times, and many tasks share a few. Emptied when it is full. */
const parsedBefore = new Map<string, ParsedCron>();
const MOST_PARSED = 1_000;

/**
 * @param seed from which `H` derives its values
 * @throws `INVALID_SCHEDULE`, naming the field of the expression
 */
export function parseCron(expression: string, seed: string, dialect?: CronDialect): ParsedCron {
  const key = `${expression}\n${dialect}\n${/h/i.test(expression) ? seed : ""}`;
  const known = parsedBefore.get(key);
  if (known) return known;
  const parsed = parse(expression, seed, dialect);
  if (parsedBefore.size === MOST_PARSED) parsedBefore.clear();
  parsedBefore.set(key, parsed);
  return parsed;
}

function parse(expression: string, seed: string, dialect: CronDialect | undefined): ParsedCron {
  const hash: CronHash = (field, count) => hashOf(`${seed}\n${field}`) % count;
  const read = dialect === undefined ? parseField : parseCronParserField;
  const parsed = split(expression, dialect).map((text, i) => read(text, KINDS[i]!, hash));
  const [seconds, minutes, hours, days, months, weekdays] = parsed as [
    ParsedField,
    ParsedField,
    ParsedField,
    ParsedField,
    ParsedField,
    ParsedField,
  ];
  const rule = dayRule(days, weekdays);
  const texts = parsed.map((field) => field.text);
  const elapsed = dialect === undefined ? minutes.star || hours.star : maskOf(hours) === ALL_HOURS;
  return {
    fields: {
      seconds: sixty(members(seconds, 60)),
      minutes: sixty(members(minutes, 60)),
      hours: maskOf(hours),
      days: rule,
      months: maskOf(months),
      ...CRON_YEARS,
    },
    rule: elapsed ? ELAPSED : dialect === undefined ? FIXED : BY_HOUR,
    canonical: (texts[0] === "0" ? texts.slice(1) : texts).join(" "),
    either: rule.either,
  };
}

/** Removes spaces, tabs and line breaks around a text: a block of YAML ends with a line break. */
export function withoutEnds(text: string): string {
  return text.replace(/^[ \t\r\n]+/, "").replace(/[ \t\r\n]+$/, "");
}

/** Six fields, seconds first. */
function split(expression: string, dialect?: CronDialect): string[] {
  const text = withoutEnds(expression);
  if (text === "") throw cronFault("The expression is empty.", "Write five fields, such as 0 9 * * 1-5.");
  if (text.startsWith("@")) return split(dialect === undefined ? macro(text) : cronParserMacro(text));
  if (/^(?:CRON_)?TZ=/.test(text))
    throw cronFault("A timezone inside of the expression is not supported.", "Use the schedule's timezone.");
  const interval = nearestDuration(text);
  if (interval !== undefined)
    throw cronFault(`${quote(text)} is a duration.`, `Use { every: "${interval}" } instead.`);
  refuseForeign(text);
  const fields = text.split(/[ \t]+/);
  const zone = fields.length > 5 ? knownZone(fields.at(-1)!) : undefined;
  if (zone !== undefined)
    throw cronFault("A timezone inside of the expression is not supported.", `Use timezone: "${zone}".`);
  if (fields.length === 5) return ["0", ...fields];
  if (fields.length === 6) return fields;
  throw cronFault(
    `${quote(text)} has ${fields.length} field${fields.length === 1 ? "" : "s"}.`,
    fields.length === 7
      ? "Cron has at most six, with seconds first: leave out the year, the seventh of Quartz."
      : "Cron has five (minute, hour, day of month, month, day of week), or six with seconds first.",
  );
}

/** Texts of other systems that are no cron. */
function refuseForeign(text: string): void {
  const [, aws, inner = ""] = /^(cron|rate|at)\((.*?)\)?$/.exec(text) ?? [];
  if (aws !== undefined) throw cronFault(`${aws}(…) is the syntax of AWS.`, awsRemedy(aws, inner));
  if (/^(?:RRULE:|DTSTART|FREQ=)/i.test(text))
    throw cronFault(
      "Rules of iCalendar (RRULE) are not supported.",
      `Write cron, a calendar event or every: ${WORDS}.`,
    );
}

function awsRemedy(kind: string, inner: string): string {
  if (kind === "rate") return `Use { every: "${nearestDuration(inner) ?? "5m"}" } instead.`;
  if (kind === "at") return `Use { at: ${quote(`${inner}Z`, 40)} } with an offset instead.`;
  return "Write the fields alone, without the year, and weekdays by their names: AWS counts them from 1.";
}

/** Tables of other systems' words. */
const WORDS = "see docs/moving/words.md";

function cronParserMacro(text: string): string {
  const expansion = Object.hasOwn(CRON_PARSER_MACROS, text) ? CRON_PARSER_MACROS[text] : undefined;
  if (expansion !== undefined) return expansion;
  const known = Object.keys(CRON_PARSER_MACROS).join(", ");
  throw cronFault(`${quote(text)} is not known in dialect cron-parser.`, `Use one of ${known}.`);
}

function macro(text: string): string {
  const name = text.toLowerCase();
  const expansion = Object.hasOwn(MACROS, name) ? MACROS[name] : undefined;
  if (expansion !== undefined) return expansion;
  if (name === "@reboot") {
    throw cronFault(
      "@reboot has no time: several nodes start and restart whenever they like.",
      "Run such work when the process starts, or trigger the task.",
    );
  }
  if (name === "@every_minute")
    throw cronFault("@every_minute is not known.", 'Use { cron: "* * * * *" } instead.');
  if (name.startsWith("@every")) {
    const interval = text.slice(6).trim() || "5m";
    throw cronFault("@every is not cron.", `Use { every: ${quote(interval, 20)} } instead.`);
  }
  throw cronFault(`${quote(text)} is not known.`, `Use one of ${Object.keys(MACROS).join(", ")}.`);
}

function parseField(text: string, kind: CronFieldKind, hash: CronHash): ParsedField {
  const items = text.split(",").map((item) => parseItem(item, kind, hash));
  if (items.length > 1 && text.split(",").includes("?"))
    throw cronFault(`? cannot be part of a list in the ${kind.name} field.`, "Write * for any value.");
  return { items, star: /^[*?]/.test(text), text: items.map((item) => item.text).join(",") };
}

function parseCronParserField(text: string, kind: CronFieldKind, hash: CronHash): ParsedField {
  const entries = text.split(",");
  const items = entries.map((entry) => parseItem(entry.replace("?", "*"), kind, hash));
  for (const entry of entries) requireCronParserItem(entry, kind, entries.length === 1);
  requireDistinct(items, kind);
  return { items, star: text === "*" || text === "?", text: items.map((item) => item.text).join(",") };
}

function members(field: ParsedField, size: number): boolean[] {
  const set = new Array<boolean>(size).fill(false);
  for (const item of field.items) {
    if (item.kind !== "range") continue;
    for (let n = item.from; n <= item.to; n += item.step) set[n] = true;
  }
  return set;
}

function maskOf(field: ParsedField): number {
  return members(field, 32).reduce((mask, member, n) => (member ? mask | (1 << n) : mask), 0);
}

function dayRule(days: ParsedField, weekdays: ParsedField): DayRule {
  const rule = everyDay();
  rule.dom = maskOf(days) >>> 1;
  const week = maskOf(weekdays);
  rule.dow = (week | (week >>> 7)) & ALL_WEEKDAYS;
  for (const item of [...days.items, ...weekdays.items]) {
    if (item.kind === "last") rule.fromEnd |= 1;
    else if (item.kind === "last-workday") rule.lastWorkday = true;
    else if (item.kind === "nearest") rule.nearest |= 1 << (item.day - 1);
    else if (item.kind === "last-weekday") rule.last |= 1 << item.weekday;
    else if (item.kind === "nth" && item.n === 5) rule.fifth |= 1 << item.weekday;
    else if (item.kind === "nth") rule.nth |= 1 << ((item.n - 1) * 7 + item.weekday);
  }
  rule.either = !days.star && !weekdays.star;
  // If both groups allow every day, `either` makes no difference. If only one does, it stays: the union is then every day.
  if (rule.dom === ALL_DAYS && rule.dow === ALL_WEEKDAYS) rule.either = false;
  return rule;
}
