import { compileSchedule, isCarillonError } from "@carillon/core";
import { assertOptions, assertWhole, roundedInstant } from "@carillon/core/internal";
import { CronExpressionParser } from "cron-parser";
import { mergeTimes } from "./merge-times.js";

/** @see compareCron */
export interface CompareCronOptions {
  /** IANA zone, for both sides. Default: `"UTC"`. (A BullMQ job scheduler without `tz` uses the zone of its process.) */
  readonly timezone?: string | undefined;
  /** The times are strictly after it: ISO 8601 with an offset, a `Date`, or epoch milliseconds. Default: now. */
  readonly from?: string | number | Date | undefined;
  /** Times to compare, 1 to 10,000. Default: 1,000. */
  readonly count?: number | undefined;
  /** Rules of Carillon's side, as in a schedule. Default: cronie's. */
  readonly dialect?: "cron-parser" | undefined;
}

export type CronSide = "carillon" | "cron-parser";

export interface CronComparison {
  /** The first times that only one side has, earliest first, at most 10. */
  readonly differences: readonly CronDifference[];
  /** Times compared, those of both sides and those of one. */
  readonly compared: number;
  /** The last of these, UTC ms. Undefined if there is none. */
  readonly until: number | undefined;
  /** The side that does not accept the expression, and why. Nothing is then compared. */
  readonly refused?: { readonly by: CronSide; readonly message: string };
  /** If cron-parser finds no further time before `count`: its last one, UTC ms, and its error. */
  readonly ended?: { readonly after: number; readonly message: string };
}

export interface CronDifference {
  /** UTC ms. */
  readonly time: number;
  readonly only: CronSide;
}

const MOST_DIFFERENCES = 10;
const MOST_TIMES = 10_000;

/**
 * Compares when Carillon and the library cron-parser, with which BullMQ computes, fire for a cron expression. Each next
 * time of the library is computed from its last one, as a BullMQ job scheduler does it.
 * @throws `INVALID_SCHEDULE` if both refuse the expression, or for an unknown dialect; `INVALID_TIMEZONE`;
 * `INVALID_OPTION`
 */
export function compareCron(expression: string, options: CompareCronOptions = {}): CronComparison {
  assertOptions(options, ["timezone", "from", "count", "dialect"]);
  const { timezone = "UTC", from = Date.now(), count = 1_000, dialect } = options;
  assertWhole(count, "count", 1, MOST_TIMES);
  const begin = roundedInstant(from, "from");
  // Checks the zone and the dialect first, so that an error below is about the expression.
  compileSchedule({ cron: "* * * * *", timezone, dialect });
  const ours = accepted(() => compileSchedule({ cron: expression, timezone, dialect }));
  const theirs = accepted(() => parse(expression, timezone, begin));
  if (ours instanceof Error) {
    if (theirs instanceof Error) throw ours;
    return refusal("carillon", ours);
  }
  if (theirs instanceof Error) return refusal("cron-parser", theirs);

  let ended: CronComparison["ended"];
  const theirNext = (after: number): number => {
    try {
      return parse(expression, timezone, after).next().getTime();
    } catch (error) {
      ended = { after, message: (error as Error).message };
      return Number.POSITIVE_INFINITY;
    }
  };
  const ourNext = (after: number): number => ours.next(after) ?? Number.POSITIVE_INFINITY;
  const differences: CronDifference[] = [];
  let until: number | undefined;
  let compared = 0;
  for (const { time, only } of mergeTimes(ourNext, theirNext, begin)) {
    if (only !== undefined) differences.push({ time, only: only === "ours" ? "carillon" : "cron-parser" });
    until = time;
    compared++;
    if (compared >= count || differences.length >= MOST_DIFFERENCES) break;
  }
  return { differences, compared, until, ...(ended ? { ended } : {}) };
}

function parse(expression: string, tz: string, after: number) {
  return CronExpressionParser.parse(expression, { tz, currentDate: new Date(after) });
}

/** Returns the error of a side that refuses the expression. */
function accepted<T>(read: () => T): T | Error {
  try {
    return read();
  } catch (error) {
    return error as Error;
  }
}

function refusal(by: CronSide, error: Error): CronComparison {
  const message = isCarillonError(error) ? error.message.replace("schedule.cron: ", "") : error.message;
  return { differences: [], compared: 0, until: undefined, refused: { by, message } };
}
