/** `start`, `start/repeat` (open), `start..stop` or `start..stop/repeat`; -1 and 0 stand for absent. */
export interface Component {
  readonly start: number;
  readonly stop: number;
  readonly repeat: number;
}

export interface Limits {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

/** Seconds are counted in microseconds, as systemd does. */
export const MICROS = 1_000_000;
export const MIN_YEAR = 1970;
export const MAX_YEAR = 2199;

export function once(start: number): Component {
  return { start, stop: -1, repeat: 0 };
}

/**
 * systemd's normal form of a chain: ranges end on their last step, ranges of one value become that value, sorted,
 * without duplicates. For a chain outside of its limits, the fault as text.
 */
export function normalise(
  chain: readonly Component[],
  limits: Limits,
  fromEnd: boolean,
): Component[] | string {
  // Every month has 28 days to count back from.
  const to = fromEnd ? limits.to - 3 : limits.to;
  const sorted = chain.map(trim).sort(compare);
  const unique = sorted.filter((component, i) => i === 0 || compare(component, sorted[i - 1]!) !== 0);
  for (const component of unique) {
    const fault = outside(component, limits.from, to, fromEnd);
    if (fault) return `${fault} in the ${limits.name}s.`;
  }
  return unique;
}

function trim({ start, stop, repeat }: Component): Component {
  if (stop > start && repeat > 0) stop -= (stop - start) % repeat;
  return start === stop ? once(start) : { start, stop, repeat };
}

function compare(a: Component, b: Component): number {
  return a.start - b.start || a.stop - b.stop || a.repeat - b.repeat;
}

function outside(
  { start, stop, repeat }: Component,
  from: number,
  to: number,
  fromEnd: boolean,
): string | undefined {
  if (start < from || start > to || stop > to) return "a value is out of range";
  if (repeat > to - from) return "a repetition is too long";
  if (stop >= 0) return stop < from || start + repeat > stop ? "a range is reversed" : undefined;
  // A repetition must have room for at least one more value; days counted from the end run towards it.
  const room = fromEnd ? start - repeat >= from : start + repeat <= to;
  return room ? undefined : "a repetition never repeats";
}

/** Calls `add` with each value of a chain; those counted from the end repeat towards the end. */
export function eachValue(
  chain: readonly Component[],
  limits: Limits,
  fromEnd: boolean,
  add: (n: number) => void,
): void {
  for (const { start, stop, repeat } of chain) {
    if (repeat === 0) add(start);
    else if (stop >= 0) for (let n = start; n <= stop; n += repeat) add(n);
    else if (fromEnd) for (let n = start; n >= limits.from; n -= repeat) add(n);
    else for (let n = start; n <= limits.to; n += repeat) add(n);
  }
}
