const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
] as const;

/** A length of time for people: `340 ms`, `4.2 s`, `3 min 10 s`, `3 d 4 h`: the two largest units, or the largest. */
export function duration(ms: number, units: 1 | 2 = 2): string {
  const whole = Math.round(Math.abs(ms));
  if (!(whole >= 1_000)) return `${whole} ms`;
  if (whole < 10_000 && whole % 1_000 >= 100) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  const at = UNITS.findIndex(([size]) => whole >= size);
  const [size, unit] = UNITS[at]!;
  const [smaller, next] = UNITS[at + 1] ?? [];
  const rest = smaller === undefined || units === 1 ? 0 : Math.floor((whole % size) / smaller);
  return `${Math.floor(whole / size)} ${unit}${rest > 0 ? ` ${rest} ${next}` : ""}`;
}

/** `in 2 h 5 min`, `now`, `3 d ago`. */
export function relative(ms: number, now: number, units?: 1 | 2): string {
  if (Math.abs(ms - now) < 1_000) return "now";
  return ms > now ? `in ${duration(ms - now, units)}` : `${duration(now - ms, units)} ago`;
}

/** ISO 8601 in UTC, without `.000`. */
export function formatInstant(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z");
}

/** A time in whole seconds. */
export function whole(at: number): number {
  return Math.floor(at / 1_000) * 1_000;
}

/** `1 run`, `2,000 runs`. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A text with a capital. For texts that begin with a word of ours, never with a name. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
