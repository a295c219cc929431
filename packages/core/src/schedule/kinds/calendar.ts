import type { z } from "zod";
import type { Component } from "../calendar/chain.js";
import { calendarFields } from "../calendar/fields.js";
import { formatCalendar } from "../calendar/format.js";
import { type CalendarEvent, parseCalendar } from "../calendar/parse.js";
import { ALL_HOURS, isAllSixty } from "../fields/bits.js";
import type { CalendarSchedule } from "../types.js";
import { CALENDAR, ELAPSED } from "../zone/dst.js";
import { requireZone } from "../zone/names.js";
import { assertLength, differenceAtChange, expressionKind } from "./expression.js";
import type { Kind } from "./kind.js";

export const calendar: Kind<CalendarSchedule, z.ZodString> = expressionKind<CalendarSchedule>({
  key: "calendar",
  takes: ["timezone", "dst"],
  example: "Mon..Fri 09:00",
  // A block of YAML ends with a line break, which systemd refuses.
  stored: (expression) => ({ calendar: expression.replace(/[\r\n]+$/, "") }),
  label: (spec) => spec.calendar,
  read({ calendar: expression, timezone }) {
    const event = eventOf(expression);
    // A wrong timezone is an error even if the expression has its own zone.
    const zone = requireZone(timezone ?? "UTC", "schedule.timezone");
    const fields = calendarFields(event);
    const elapsed =
      fields.hours === ALL_HOURS ||
      isAllSixty(fields.minutes) ||
      recurs(event.hours) ||
      recurs(event.minutes);
    return {
      fields,
      rule: elapsed ? ELAPSED : CALENDAR,
      canonical: formatCalendar(event),
      zone: event.zone ?? zone,
      ownZone: event.zone !== undefined,
      daysOnly: event.daysOnly ?? false,
    };
  },
  lint({ timezone, dst }, expression, warn) {
    const { zone } = expression;
    if (timezone !== undefined && zone !== timezone) {
      const message = `The expression's own zone ${zone} is used, not timezone ${timezone}.`;
      warn("ZONE_IGNORED", message, "Give the zone once: leave out timezone, or the zone in the expression.");
    }
    if (dst?.overlap !== undefined) return;
    const systemd = "a timer of systemd, which passes over the hour that comes twice";
    const message = differenceAtChange(expression, CALENDAR, systemd);
    if (message) warn("SYSTEMD_DIFFERS", message, 'For the times of systemd, add dst: { overlap: "first" }.');
  },
});

/**
 * The zone that a calendar event itself names, after its last space, or implies (an `@` timestamp is UTC). It takes
 * precedence over the `timezone` of its schedule. Undefined if there is none, or if the expression is not valid.
 */
export function calendarZone(expression: string): string | undefined {
  try {
    return eventOf(expression).zone;
  } catch {
    return undefined;
  }
}

/** Whether values follow each other from the first one to the end, such as `0/20`, as with `*` and a step in cron. */
function recurs(chain: readonly Component[] | undefined): boolean {
  return chain?.some(({ start, stop, repeat }) => repeat > 0 && stop === -1 && start < repeat) ?? false;
}

function eventOf(expression: string): CalendarEvent {
  assertLength(expression, "schedule.calendar");
  return parseCalendar(expression);
}
