import { DAY, yearOfDays } from "./civil.js";
import type { TimePattern } from "./day-minutes.js";
import type { Excluder } from "./excluder.js";
import { type Clock, type Stretch, takenSince, takenUntil } from "./stretch.js";
import type { CompiledSchedule } from "./types.js";
import { zoneOf } from "./zone.js";

/** An excluder and what to call it. */
export interface NamedExcluder {
  readonly excluder: Excluder;
  readonly label: string;
}

/** The clock of a schedule, and the times of day that it can have there. */
export interface Times {
  readonly zone: string;
  /** Undefined: any. */
  readonly pattern: () => TimePattern | undefined;
}

/**
 * What one search may cost before it gives up, in questions to excluders. What these take minute by minute of the day, or
 * day by day, is leapt over, so that only those which eat a schedule otherwise come this far: by parts of a minute, or in
 * steps that divide no day. What is then left is taken for nothing.
 */
const MAX_COST = 20_000;
/** To go on to another time costs as much as so many questions. */
const STEP = 4;
/** After so many leaps in a row that were shorter, in ms, what all excluders take together is asked for. */
const FEW = 3;
const LONG = 28 * DAY;
/** How many years a search may come to, and each of several at least: of each one, a zone's offsets are asked of Intl. */
const MAX_YEARS = 32;
const LEAST_YEARS = 4;

/** A schedule without the times that are taken away. */
export class ExcludingSchedule implements CompiledSchedule {
  readonly #inner: CompiledSchedule;
  readonly #clock: Clock;
  readonly #excluders: readonly NamedExcluder[];
  readonly #maxCost: number;
  readonly #maxYears: number;

  /**
   * @param times those of `inner`
   * @param share how many such schedules one search asks
   */
  constructor(inner: CompiledSchedule, times: Times, excluders: readonly NamedExcluder[], share = 1) {
    this.#inner = inner;
    this.#clock = { zone: zoneOf(times.zone), pattern: times.pattern };
    this.#excluders = excluders;
    this.#maxCost = MAX_COST / share;
    this.#maxYears = Math.max(MAX_YEARS / share, LEAST_YEARS);
  }

  next(after: number): number | undefined {
    return this.#search(this.#inner.next(after), (time, by) =>
      this.#inner.next(takenUntil(time, by, this.#clock) - 1),
    );
  }

  latest(at: number): number | undefined {
    return this.#search(this.#inner.latest(at), (time, by) =>
      this.#inner.latest(takenSince(time, by, this.#clock) - 1),
    );
  }

  #search(
    first: number | undefined,
    onward: (time: number, by: readonly Stretch[]) => number | undefined,
  ): number | undefined {
    let time = first;
    for (let cost = 0, years = 0, short = 0; time !== undefined; ) {
      const by = excluderAt(this.#excluders, time);
      if (by === undefined) return time;
      if (cost >= this.#maxCost || years >= this.#maxYears) return undefined;
      const before = time;
      time = onward(time, stretchesAt(time, short < FEW ? [by] : this.#excluders));
      cost += STEP + this.#excluders.length;
      if (time === undefined) return undefined;
      short = Math.abs(time - before) < LONG ? short + 1 : 0;
      if (yearOf(time) !== yearOf(before)) years++;
    }
    return undefined;
  }
}

function stretchesAt(time: number, by: readonly NamedExcluder[]): Stretch[] {
  return by.map(({ excluder }) => excluder.stretch(time)).filter((stretch) => stretch !== undefined);
}

function yearOf(time: number): number {
  return yearOfDays(Math.floor(time / DAY));
}

/** What takes an occurrence of the inner schedule away. */
export function excluderAt(excluders: readonly NamedExcluder[], time: number): NamedExcluder | undefined {
  for (const named of excluders) if (named.excluder.has(time)) return named;
  return undefined;
}
