import type * as Sdk from "@carillon/sdk";
import { Failure, misuse } from "./failure.js";
import { localIso, parseInstant } from "./times.js";

export const SYNTAXES = ["cron", "calendar", "every", "at"] as const;
export type Syntax = (typeof SYNTAXES)[number];

/** More times than anyone reads, few enough to hold. */
const MOST_TIMES = 10_000;

/** What `next` is asked, on the command line or as one line of a batch. */
export interface Question {
  readonly expr: string;
  readonly syntax: Syntax;
  readonly timezone?: string | undefined;
  /** Epoch ms; the times are strictly after it. */
  readonly from: number;
  readonly count: number;
  /** The task id that `H` in a cron expression is spread by. */
  readonly id: string;
}

export interface Answer {
  readonly canonical: string;
  readonly description: string;
  /** Epoch ms. */
  readonly next: readonly number[];
  /** Nothing follows these. */
  readonly exhausted: boolean;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

/** Checks what is asked, as data from strangers. @throws `INVALID_OPTION`, `INVALID_SCHEDULE` */
export function readQuestion(input: unknown, now: number): Question {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw misuse(
      "line",
      "not an object.",
      'Give {"expr": …}, with syntax, timezone, from and count as needed.',
    );
  }
  const { expr, syntax, timezone, from, count, id } = input as Record<string, unknown>;
  if (typeof expr !== "string") throw misuse("expr", "missing.", "Give the expression as a string.");
  if (id != null && typeof id !== "string") throw misuse("id", "not a string.", "Give a task id.");
  return {
    expr,
    syntax: syntax == null ? guessSyntax(expr) : syntaxOf(syntax),
    timezone: timezone == null ? undefined : zoneOf(timezone),
    from: from == null ? now : fromOf(from),
    count: count == null ? 5 : countOf(count),
    id: id ?? "",
  };
}

function syntaxOf(value: unknown): Syntax {
  const known = SYNTAXES.find((syntax) => syntax === value);
  if (known) return known;
  throw misuse("syntax", "unknown.", `Use ${SYNTAXES.join(", ")}, or leave it out.`);
}

function zoneOf(value: unknown): string {
  if (typeof value === "string") return value;
  throw misuse("timezone", "not a string.", "Give an IANA zone, for example Europe/Berlin.");
}

function fromOf(value: unknown): number {
  const ms = typeof value === "string" ? parseInstant(value) : value;
  // The range of Date, so that what is printed is a time.
  if (typeof ms === "number" && Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  throw misuse("from", "not a time.", "Give ISO 8601 with Z or an offset, for example 2026-01-01T00:00:00Z.");
}

function countOf(value: unknown): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TIMES)
    return value as number;
  throw misuse("count", "out of range.", `Give a whole number from 0 to ${MOST_TIMES}.`);
}

/** The syntaxes hardly overlap: what looks like an instant, a duration, or cron's fields is one; the rest is a calendar event. */
export function guessSyntax(expr: string): Syntax {
  const text = expr.trim();
  if (text.startsWith("@")) return "cron";
  if (/^\d{12,}$/.test(text) || /^[+-]?\d{4,6}-\d{2}-\d{2}T/.test(text)) return "at";
  if (/^(\d+(\.\d+)?\s*[a-z]+\s*)+$/i.test(text) || /^P(?=[\dT])[\dTYMWDHS.,]+$/.test(text)) return "every";
  const fields = text.split(/\s+/);
  // A calendar event has its colons or a date (`Mon *-*-* UTC`); cron has neither, and at least five fields.
  const dateLike = fields.some((field) => field.includes(":") || field.includes("..") || /-.*-/.test(field));
  return fields.length >= 3 && !dateLike ? "cron" : "calendar";
}

function scheduleOf({ expr, syntax, timezone }: Question): Sdk.Schedule {
  const zone = timezone === undefined ? {} : { timezone };
  if (syntax === "cron") return { cron: expr, ...zone };
  if (syntax === "calendar") return { calendar: expr, ...zone };
  // These two know no zone; the times are only shown in it.
  if (timezone !== undefined) assertZone(timezone);
  return syntax === "every" ? { every: expr } : { at: /^\d+$/.test(expr) ? Number(expr) : expr };
}

function assertZone(zone: string): void {
  try {
    localIso(0, zone);
  } catch (error) {
    const message = "timezone: not known here. Use an IANA zone, for example Europe/Berlin.";
    throw new Failure({ code: "INVALID_TIMEZONE", message, field: "timezone" }, error);
  }
}

/** @throws coded errors about the expression */
export function answer(sdk: typeof Sdk, question: Question): Answer {
  const parsed = sdk.scheduleSchema.safeParse(scheduleOf(question));
  if (!parsed.success) throw invalid(parsed.error);
  const schedule = parsed.data;
  const compiled = sdk.compileSchedule(schedule, question.id);
  const next: number[] = [];
  let time = compiled.next(question.from);
  while (time !== undefined && next.length < question.count) {
    next.push(time);
    time = compiled.next(time);
  }
  return {
    canonical: sdk.canonicalSchedule(schedule, question.id),
    description: sdk.describeSchedule(schedule),
    next,
    exhausted: time === undefined,
    warnings: sdk.lintSchedule(schedule),
  };
}

/** The schema's first complaint, with the code that it carries. */
function invalid(error: { issues: readonly { message: string; path: readonly PropertyKey[] }[] }): Failure {
  const issue = error.issues[0];
  const params = (issue as { params?: { code?: Sdk.ErrorCode } } | undefined)?.params;
  const field = issue?.path.map(String).join(".");
  const what = issue?.message ?? "does not fit.";
  return new Failure({
    code: params?.code ?? "INVALID_SCHEDULE",
    message: field ? `${field}: ${what}` : what,
    ...(field ? { field } : {}),
  });
}
