import { calendarZone } from "./kinds/calendar.js";
import type { Schedule } from "./types.js";

/** The zone on whose clock the times of a schedule are. Undefined: on none, as an interval's, or on those of several. */
export function scheduleZone(schedule: Schedule): string | undefined {
  if ("any" in schedule) {
    const [zone, ...others] = new Set(schedule.any.map((member) => scheduleZone(member as Schedule)));
    return others.length === 0 ? zone : undefined;
  }
  if ("calendar" in schedule) return calendarZone(schedule.calendar) ?? schedule.timezone ?? "UTC";
  if ("cron" in schedule) return schedule.timezone ?? "UTC";
  return "every" in schedule ? schedule.timezone : undefined;
}
