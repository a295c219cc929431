const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Number of shades of a minute with starts; a minute without starts has none. */
const LEVELS = 5;

/** A minute and its number of starts. */
interface Cell {
  readonly at: number;
  readonly count: number;
}

/** Counts of minutes, by the hours of a zone; full hours of some zones are half hours of UTC. */
export function hoursOf(from: number, counts: readonly number[], zone: string) {
  const sinceHour = Number(new Intl.DateTimeFormat("en", { timeZone: zone, minute: "numeric" }).format(from));
  const first = (Math.floor(from / MINUTE) - sinceHour) * MINUTE;
  const rows = Math.ceil((from + counts.length * MINUTE - first) / HOUR);
  const cells = counts.map((count, i): Cell => ({ at: from + i * MINUTE, count }));
  return Array.from({ length: rows }, (_, row) => {
    const at = first + row * HOUR;
    const within = cells.filter((cell) => cell.at >= at && cell.at < at + HOUR);
    return { at, within, sum: within.reduce((sum, { count }) => sum + count, 0) };
  });
}

/** Largest count of each shade: up to the median of the minutes with starts, then in equal steps, so that a peak stands out. */
export function limitsOf(counts: readonly number[]): number[] {
  const sorted = counts.filter((count) => count > 0).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const most = sorted.at(-1) ?? 0;
  const limits = Array.from({ length: LEVELS }, (_, i) =>
    Math.round(usual + ((most - usual) * i) / (LEVELS - 1)),
  );
  return [...new Set(limits)].filter((limit) => limit > 0);
}

/** The largest count has the darkest shade, however few shades there are. */
export function levelOf(count: number, limits: readonly number[]): number {
  if (count === 0) return 0;
  return LEVELS - (limits.length - 1 - limits.findIndex((limit) => count <= limit));
}
