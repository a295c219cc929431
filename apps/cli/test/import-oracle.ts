/*
 * Times of a cron expression by looking at each minute of a wall clock: an implementation of its own, to check an import with.
 */
const NAMES = "sun mon tue wed thu fri sat".split(" ");
const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MACROS: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
};

/** `robfig`: a day field with a step is none. `cronie`: one that begins with `*` is. */
export type Joins = "robfig" | "cronie";

export function wallTimes(
  expression: string,
  zone: string,
  joins: Joins,
  from: number,
  to: number,
): number[] {
  const fields = (MACROS[expression] ?? expression).toLowerCase().replaceAll("?", "*").split(" ");
  const sets = fields.map((field, i) => valuesOf(field, i));
  const star = (field: string) => (joins === "cronie" ? field.startsWith("*") : /^\*(?:\/1)?$/.test(field));
  const all = star(fields[2]!) || star(fields[4]!);
  const times: number[] = [];
  for (let hour = from; hour < to; hour += 3_600_000) {
    const offset = offsetOf(zone, hour);
    for (let time = hour; time < hour + 3_600_000; time += 60_000) {
      const wall = new Date(time + offset);
      const [monthDay, weekday] = [sets[2]!.has(wall.getUTCDate()), sets[4]!.has(wall.getUTCDay())];
      if (
        sets[0]!.has(wall.getUTCMinutes()) &&
        sets[1]!.has(wall.getUTCHours()) &&
        sets[3]!.has(wall.getUTCMonth() + 1) &&
        (all ? monthDay && weekday : monthDay || weekday)
      )
        times.push(time);
    }
  }
  return times;
}

function valuesOf(field: string, at: number): Set<number> {
  const [least, most] = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 7],
  ][at] as [number, number];
  const number = (text: string) => {
    const name = at === 4 ? NAMES.indexOf(text) : at === 3 ? MONTHS.indexOf(text) + 1 : -1;
    return /^\d/.test(text) ? Number(text) : name;
  };
  const values = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step] = item.split("/");
    const [first = "", last] =
      range === "*" ? [String(least), String(at === 4 ? 6 : most)] : range.split("-");
    const end = number(last ?? (step ? String(most) : first));
    for (let n = number(first); n <= end; n += Number(step ?? 1)) values.add(at === 4 ? n % 7 : n);
  }
  return values;
}

const formats = new Map<string, Intl.DateTimeFormat>();

export function offsetOf(timeZone: string, time: number): number {
  const format =
    formats.get(timeZone) ?? new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  formats.set(timeZone, format);
  const [, sign, hours, minutes] = /GMT(?:([+-])(\d+):(\d+))?/.exec(format.format(time)) ?? [];
  return hours === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
