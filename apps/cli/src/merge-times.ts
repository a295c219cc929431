/** The first time strictly after `after`, UTC ms; infinity: none. */
export type NextTime = (after: number) => number;

/** A time of one rule or of both. */
export interface MergedTime {
  readonly time: number;
  /** The only rule that has it. */
  readonly only?: "ours" | "theirs";
}

/** The times of two rules after `from`, in order, each computed from the one before it. */
export function* mergeTimes(ours: NextTime, theirs: NextTime, from: number): Generator<MergedTime> {
  let [a, b] = [ours(from), theirs(from)];
  for (;;) {
    const time = Math.min(a, b);
    if (time === Number.POSITIVE_INFINITY) return;
    yield a === b ? { time } : { time, only: a < b ? "ours" : "theirs" };
    if (a === time) a = ours(time);
    if (b === time) b = theirs(time);
  }
}
