import { DAY, HOUR, modulo } from "../civil.js";
import { hasBit } from "../fields/bits.js";
import { type Fields, firstInHour, matchesDay } from "../fields/fields.js";

/**
 * The wall clock time at which cron-parser runs times that a gap skips, or -Infinity if it loses them. It steps through
 * the hours of a day, and accepts the first hour after the gap in place of a skipped one. Past midnight it steps only
 * from an hour that matches; from any other it goes on to the next day. It does not notice gaps of a day. Gaps that do
 * not begin and end with an hour are left out: it goes wrong at these (docs/schedules.md).
 * @param from first wall clock time that is skipped; @param to first one after these
 */
export function landing(fields: Fields, from: number, to: number): number {
  const has = (wall: number) => hasBit(fields.hours, modulo(Math.floor(wall / HOUR), 24));
  const whole = from % HOUR === 0 && to % HOUR === 0 && to - from < DAY;
  // If the hour after the gap is in the schedule anyway, its own times stand for the skipped ones.
  if (!whole || has(to) || !matchesDay(fields, to)) return Number.NEGATIVE_INFINITY;
  const before = from - HOUR;
  const overMidnight = Math.floor(before / DAY) !== Math.floor(to / DAY);
  if (overMidnight && !(has(before) && matchesDay(fields, before))) return Number.NEGATIVE_INFINITY;
  for (let wall = from; wall < to; wall += HOUR) {
    if (has(wall)) return to + firstInHour(fields);
  }
  return Number.NEGATIVE_INFINITY;
}
