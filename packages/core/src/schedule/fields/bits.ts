/** Sets of small numbers as bits of one integer (at most 31), or of two of 30 bits for minutes and seconds. */

export const ALL_HOURS = 0xff_ffff;

/** The lowest member that is at least `from`, or -1. */
export function nextBit(mask: number, from: number): number {
  if (from > 30) return -1;
  const rest = mask & (-1 << from);
  return rest === 0 ? -1 : 31 - Math.clz32(rest & -rest);
}

/** The highest member that is at most `to`, or -1. */
export function prevBit(mask: number, to: number): number {
  if (to < 0) return -1;
  return 31 - Math.clz32(to >= 30 ? mask : mask & ((2 << to) - 1));
}

export function hasBit(mask: number, bit: number): boolean {
  return ((mask >>> bit) & 1) === 1;
}

/** Members of 0-59. */
export interface Sixty {
  lo: number;
  hi: number;
}

const HALF = 0x3fff_ffff;
export const ALL_SIXTY: Sixty = { lo: HALF, hi: HALF };

export function isAllSixty({ lo, hi }: Sixty): boolean {
  return (lo & hi) === HALF;
}

export function hasSixty(set: Sixty, n: number): boolean {
  return n < 30 ? hasBit(set.lo, n) : hasBit(set.hi, n - 30);
}

export function nextSixty(set: Sixty, from: number): number {
  if (from < 30) {
    const low = nextBit(set.lo, from);
    if (low >= 0) return low;
    from = 30;
  }
  const high = nextBit(set.hi, from - 30);
  return high < 0 ? -1 : high + 30;
}

export function prevSixty(set: Sixty, to: number): number {
  if (to >= 30) {
    const high = prevBit(set.hi, to - 30);
    if (high >= 0) return high + 30;
    to = 29;
  }
  return prevBit(set.lo, to);
}

/** From a set given as membership of each number. */
export function sixty(members: readonly boolean[]): Sixty {
  const set = { lo: 0, hi: 0 };
  for (let n = 0; n < 60; n++) {
    if (!members[n]) continue;
    if (n < 30) set.lo |= 1 << n;
    else set.hi |= 1 << (n - 30);
  }
  return set;
}

export function membersOf(mask: number): number[] {
  const members: number[] = [];
  for (let n = 0; n <= 30; n++) if (hasBit(mask, n)) members.push(n);
  return members;
}

export function membersOfSixty(set: Sixty): number[] {
  return [...membersOf(set.lo), ...membersOf(set.hi).map((n) => n + 30)];
}
