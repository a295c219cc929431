import { CarillonError, quote } from "../errors.js";
import { parseCalendar } from "./calendar.js";
import { calendarFields } from "./calendar-fields.js";
import { formatCalendar } from "./calendar-format.js";
import { parseCron } from "./cron.js";
import { formatDuration, parseDuration } from "./duration.js";
import { type DstRule, FieldSchedule } from "./engine.js";
import type { Fields } from "./fields.js";
import { formatInstant, parseInstant } from "./instant.js";
import { AtOnce, EveryInterval } from "./simple.js";
import type { CompiledSchedule, EverySchedule, Schedule } from "./types.js";
import { zoneOf } from "./zone.js";
import { isUtc, requireZone } from "./zone-names.js";

/** The longest cron or calendar expression, in characters. */
export const MAX_EXPRESSION_LENGTH = 512;

/** What the engine needs of a cron or calendar schedule, and what descriptions are made of. */
export interface FieldPlan {
  readonly fields: Fields;
  readonly zone: string;
  readonly rule: DstRule;
  readonly canonical: string;
}

/**
 * A schedule made ready to answer. Compile once and keep it: `next` then takes microseconds.
 * @param seed the task's id; `H` in a cron expression derives its values from it, the same for ever
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`
 */
export function compileSchedule(schedule: Schedule, seed = ""): CompiledSchedule {
  const plan = planOf(schedule, seed);
  if (plan)
    return new FieldSchedule(plan.fields, isUtc(plan.zone) ? undefined : zoneOf(plan.zone), plan.rule);
  if ("every" in schedule) return new EveryInterval(intervalOf(schedule), originOf(schedule));
  if ("at" in schedule) return new AtOnce(parseInstant(schedule.at, "schedule.at"));
  throw new CarillonError("INVALID_SCHEDULE", "A schedule needs one of cron, calendar, every or at.", {
    field: "schedule",
  });
}

/**
 * The one text that all spellings of a schedule share: systemd's normalised form for calendar events (without
 * the schedule's own `timezone`), numbers for names in cron, whole units for durations, UTC for times.
 * For cron and calendar it is an expression again, with the same meaning.
 * @param seed the task's id, to resolve `H`
 */
export function canonicalSchedule(schedule: Schedule, seed = ""): string {
  const plan = planOf(schedule, seed);
  if (plan) return plan.canonical;
  if ("every" in schedule) {
    const origin = originOf(schedule);
    return formatDuration(intervalOf(schedule)) + (origin === 0 ? "" : ` from ${formatInstant(origin)}`);
  }
  if ("at" in schedule) return formatInstant(parseInstant(schedule.at, "schedule.at"));
  return "";
}

/**
 * Whether no time ever matches, past times included: `0 0 31 2 *`, or a local time that a zone skipped. A
 * schedule whose times are all past did fire once, so this is false for it.
 */
export function neverFires(schedule: Schedule): boolean {
  return compileSchedule(schedule).next(Number.NEGATIVE_INFINITY) === undefined;
}

/** Undefined for schedules that are not made of fields. */
export function planOf(schedule: Schedule, seed = ""): FieldPlan | undefined {
  if ("cron" in schedule) {
    bounded(schedule.cron, "schedule.cron");
    const { fields, rule, canonical } = parseCron(schedule.cron, seed);
    return { fields, rule, canonical, zone: requireZone(schedule.timezone ?? "UTC", "schedule.timezone") };
  }
  if ("calendar" in schedule) {
    bounded(schedule.calendar, "schedule.calendar");
    const event = parseCalendar(schedule.calendar);
    // A wrong timezone is an error even where the expression has its own zone.
    const zone = requireZone(schedule.timezone ?? "UTC", "schedule.timezone");
    return {
      fields: calendarFields(event),
      rule: "calendar",
      canonical: formatCalendar(event),
      zone: event.zone ?? zone,
    };
  }
  return undefined;
}

/** Before any pattern looks at it: hostile input may be megabytes. */
function bounded(expression: string, field: string): void {
  if (typeof expression !== "string") {
    throw new CarillonError("INVALID_SCHEDULE", `${quote(expression)} is not a text.`, { field });
  }
  if (expression.length > MAX_EXPRESSION_LENGTH) {
    const what = `The expression is longer than ${MAX_EXPRESSION_LENGTH} characters.`;
    throw new CarillonError("INVALID_SCHEDULE", what, {
      field,
      remedy: "Use a shorter one, or several tasks.",
    });
  }
}

function intervalOf(schedule: EverySchedule): number {
  return parseDuration(schedule.every, "schedule.every");
}

/** The Unix epoch, unless an origin is given. */
function originOf(schedule: EverySchedule): number {
  return schedule.origin === undefined ? 0 : parseInstant(schedule.origin, "schedule.origin");
}
