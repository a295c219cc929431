import type * as Sdk from "@carillon/sdk/schedule";
import { parseSchedule } from "./answer.js";
import { Failure } from "./failure.js";
import type { Range } from "./question.js";

/** Description of a schedule, and its times. */
export interface Forecast {
  readonly schedule: Sdk.Schedule;
  readonly kind: Sdk.ScheduleKind;
  readonly canonical: string;
  readonly description: string;
  readonly warnings: ReturnType<typeof Sdk.lintSchedule>;
  readonly preview: ReturnType<typeof Sdk.previewSchedule>;
}

/**
 * Forecast for a task with this schedule that is put at `from`.
 *
 * @param input as written or stored; the schema judges it
 * @throws coded errors about the schedule; `INVALID_SCHEDULE` for calendars that are missing or not used
 */
export function forecast(
  sdk: typeof Sdk,
  input: unknown,
  { from, count, task, timezone }: Range,
  calendars: ReadonlyMap<string, readonly string[]>,
): Forecast {
  const schedule = parseSchedule(sdk, input);
  matchCalendars(namedBy(schedule), calendars);
  const context = { calendars };
  const seed = sdk.seedOf(task);
  return {
    schedule,
    kind: sdk.scheduleKind(schedule),
    canonical: sdk.canonicalSchedule(schedule, seed),
    description: sdk.describeSchedule(schedule, seed),
    warnings: sdk.lintSchedule(schedule, context),
    preview: sdk.previewSchedule(schedule, { from, count, seed, context, timezone }),
  };
}

/** The calendars that a schedule names, at its top and in the members of a union. */
function namedBy(schedule: Sdk.Schedule): string[] {
  const members = "any" in schedule ? [schedule, ...schedule.any] : [schedule];
  return members.flatMap(({ except = [] }) => except.flatMap((spec) => ("named" in spec ? spec.named : [])));
}

/** Checks both directions: a calendar that is not given excludes nothing, and neither does one that is not used. */
function matchCalendars(named: readonly string[], given: ReadonlyMap<string, unknown>): void {
  const missing = named.find((name) => !given.has(name));
  if (missing !== undefined) {
    const remedy = `Give its entries: --calendar ${missing}=FILE.`;
    throw unfit(`except names the calendar ${missing}, which is not known without Redis. ${remedy}`, remedy);
  }
  const unused = [...given.keys()].find((name) => !named.includes(name));
  if (unused !== undefined) {
    const remedy = `Add --except ${unused}, or leave it out.`;
    throw unfit(`calendar: nothing names ${unused}. ${remedy}`, remedy);
  }
}

function unfit(message: string, remedy: string): Failure {
  return new Failure({ code: "INVALID_SCHEDULE", message, field: "calendar", remedy });
}
