import type * as Sdk from "@carillon/sdk/schedule";
import { type Expression, expressionOf, guessSyntax, SYNTAXES, type Syntax } from "./expression.js";
import { Failure, misuse } from "./failure.js";
import { taskRef } from "./fields.js";
import { localIso, readInstant } from "./times.js";

/** Largest number of times: more than a person reads, few enough for memory. */
const MOST_TIMES = 10_000;

/** The requested times, independent of the schedule. */
export interface Range {
  /** Time zone for local times. */
  readonly timezone: string | undefined;
  /** Epoch ms; the times are strictly after it. */
  readonly from: number;
  readonly count: number;
  /** The task that `H` in a cron expression, and jitter, are derived from. */
  readonly task: ReturnType<typeof taskRef>;
}

/** One expression and its range: a line of a batch. */
export interface Question extends Range {
  readonly schedule: Expression;
}

/** Checks a line of a batch, as data from strangers. @throws `INVALID_OPTION`, `INVALID_TIMEZONE` */
export function readQuestion(sdk: typeof Sdk, input: unknown, now: number): Question {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw misuse(
      "line",
      "not an object.",
      'Give {"expr": …}, with syntax, timezone, from and count as needed.',
    );
  }
  const { expr, syntax, dialect, ...rest } = input as Record<string, unknown>;
  if (typeof expr !== "string") throw misuse("expr", "missing.", "Give the expression as a string.");
  const range = readRange(sdk, rest, now);
  const schedule = readExpression(expr, syntax, range.timezone);
  if (dialect == null) return { ...range, schedule };
  if (typeof dialect !== "string")
    throw misuse("dialect", "not a string.", "Give cron-parser, or leave it out.");
  return { ...range, schedule: { ...schedule, dialect } };
}

/** @throws `INVALID_OPTION` */
export function readRange(sdk: typeof Sdk, input: Record<string, unknown>, now: number): Range {
  const { timezone, from, count, id, owner } = input;
  if (id != null && typeof id !== "string") throw misuse("id", "not a string.", "Give a task id.");
  if (owner != null && typeof owner !== "string") throw misuse("owner", "not a string.", "Give an owner.");
  return {
    timezone: timezone == null ? undefined : zoneOf(timezone),
    from: from == null ? now : fromOf(sdk, from),
    count: count == null ? 5 : countOf(count),
    task: taskRef(id ?? "", undefined, owner ?? undefined),
  };
}

/** @throws `INVALID_OPTION` for the syntax, `INVALID_TIMEZONE` for a zone that is not checked elsewhere */
export function readExpression(expr: string, syntax: unknown, timezone: string | undefined): Expression {
  const read = expressionOf(expr, syntax == null ? guessSyntax(expr) : syntaxOf(syntax), timezone);
  if (timezone !== undefined && !("timezone" in read)) assertZone(timezone);
  return read;
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

function fromOf(sdk: typeof Sdk, value: unknown): number {
  // A date alone is its midnight in UTC.
  const given = typeof value === "string" ? value.replace(/^\d{4}-\d{2}-\d{2}$/, "$&T00:00Z") : value;
  const ms = readInstant(sdk, typeof given === "number" ? Math.floor(given) : given);
  if (ms !== undefined) return ms;
  throw misuse("from", "not a time.", "Give ISO 8601 with Z or an offset, for example 2026-01-01T00:00:00Z.");
}

function countOf(value: unknown): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TIMES)
    return value as number;
  throw misuse("count", "out of range.", `Give a whole number from 0 to ${MOST_TIMES}.`);
}

function assertZone(zone: string): void {
  try {
    localIso(0, zone);
  } catch (error) {
    const message = "timezone: not known here. Use an IANA zone, for example Europe/Berlin.";
    throw new Failure({ code: "INVALID_TIMEZONE", message, field: "timezone" }, error);
  }
}
