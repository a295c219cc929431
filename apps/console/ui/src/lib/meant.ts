/*
 * Times that people mean by a word, as inputs show them: `2026-11-27T08:00`. All of the viewer's wall clock.
 */

const DAY = 24 * 3_600_000;

/** Another day, or the same one, at a time of the wall clock. */
function on(now: string, days: number, clock: string): string {
  return `${new Date(Date.parse(`${now.slice(0, 10)}Z`) + days * DAY).toISOString().slice(0, 10)}T${clock}`;
}

/** Times to come. @param now as an input shows it @param hour the time in one hour, which may be on another clock */
export function ahead(
  now: string,
  hour: string,
): Readonly<Record<"hour" | "evening" | "morning" | "monday", string>> {
  const weekday = new Date(`${now.slice(0, 10)}Z`).getUTCDay();
  return {
    hour,
    evening: on(now, now < on(now, 0, "18:00") ? 0 : 1, "18:00"),
    morning: on(now, 1, "08:00"),
    monday: on(now, 8 - (weekday || 7), "08:00"),
  };
}

/** Ranges that ended, or go on: without `to`, until now. */
export function back(
  now: string,
): Readonly<Record<"day" | "night" | "yesterday" | "week", { from: string; to?: string }>> {
  return {
    day: { from: on(now, -1, now.slice(11)) },
    night: { from: on(now, -1, "20:00"), to: on(now, 0, "08:00") },
    yesterday: { from: on(now, -1, "00:00"), to: on(now, 0, "00:00") },
    week: { from: on(now, -7, now.slice(11)) },
  };
}
