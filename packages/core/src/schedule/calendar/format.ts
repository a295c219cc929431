import { type Component, MICROS } from "./chain.js";
import type { CalendarEvent } from "./parse.js";

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/** A calendar event as `systemd-analyze calendar` normalises it. */
export function formatCalendar(event: CalendarEvent): string {
  const date = `${chain(event.years, 4)}-${chain(event.months, 2)}${event.fromEnd ? "~" : "-"}${chain(event.days, 2)}`;
  const time = `${chain(event.hours, 2)}:${chain(event.minutes, 2)}:${chain(event.seconds, 2, MICROS)}`;
  return [event.weekdays === 0 ? "" : weekdays(event.weekdays), date, time, event.zone ?? ""]
    .filter(Boolean)
    .join(" ");
}

/** Three days in a row and more become a range, two stay a list. */
function weekdays(bits: number): string {
  const texts: string[] = [];
  for (let day = 0; day < 7; day++) {
    if ((bits & (1 << day)) === 0) continue;
    let end = day;
    while (end < 6 && (bits & (1 << (end + 1))) !== 0) end++;
    texts.push(end === day ? DAYS[day]! : `${DAYS[day]}${end > day + 1 ? ".." : ","}${DAYS[end]}`);
    day = end;
  }
  return texts.join(",");
}

function chain(components: readonly Component[] | undefined, width: number, unit = 1): string {
  if (components === undefined || (unit === MICROS && isEachSecond(components))) return "*";
  return components.map((component) => format(component, width, unit)).join(",");
}

/**
 * Whether the seconds are just `*`: `0/1` covers all other whole seconds. Systemd simplifies only seconds, so nothing
 * else is.
 */
function isEachSecond(components: readonly Component[]): boolean {
  const whole = components.every(({ start, repeat }) => start % MICROS === 0 && repeat % MICROS === 0);
  return whole && components.some(({ start, stop, repeat }) => start === 0 && stop < 0 && repeat === MICROS);
}

function format({ start, stop, repeat }: Component, width: number, unit: number): string {
  const number = (n: number, digits: number) => {
    const rest = n % unit;
    return (
      String(Math.floor(n / unit)).padStart(digits, "0") +
      (rest > 0 ? `.${String(rest).padStart(6, "0")}` : "")
    );
  };
  const range = stop >= 0 ? `..${number(stop, width)}` : "";
  return (
    number(start, width) +
    range +
    (repeat > 0 && !(stop >= 0 && repeat === unit) ? `/${number(repeat, 1)}` : "")
  );
}
