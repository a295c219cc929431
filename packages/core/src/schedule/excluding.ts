import { DAY, yearOfDays } from "./civil.js";
import type { Excluder } from "./excluder.js";
import type { CompiledSchedule } from "./types.js";

/** An excluder and what to call it. */
export interface NamedExcluder {
  readonly excluder: Excluder;
  readonly label: string;
}

/**
 * What one search may cost before it gives up, in questions to excluders. These leap over whole minutes, hours and days
 * where they can, so that only those which eat a schedule time by time come this far. What is then left is taken for
 * nothing.
 */
const MAX_COST = 20_000;
/** To go on to another time costs as much as so many questions. */
const STEP = 4;
/** How many years a search may come to, and each of several at least: of each one, a zone's offsets are asked of Intl. */
const MAX_YEARS = 32;
const LEAST_YEARS = 4;

/** A schedule without the times that are taken away. */
export class ExcludingSchedule implements CompiledSchedule {
  readonly #inner: CompiledSchedule;
  readonly #excluders: readonly NamedExcluder[];
  readonly #maxCost: number;
  readonly #maxYears: number;

  /** @param share how many such schedules one search asks */
  constructor(inner: CompiledSchedule, excluders: readonly NamedExcluder[], share = 1) {
    this.#inner = inner;
    this.#excluders = excluders;
    this.#maxCost = MAX_COST / share;
    this.#maxYears = Math.max(MAX_YEARS / share, LEAST_YEARS);
  }

  next(after: number): number | undefined {
    return this.#search(this.#inner.next(after), (time, by) => this.#inner.next(by.end(time) - 1));
  }

  latest(at: number): number | undefined {
    return this.#search(this.#inner.latest(at), (time, by) => this.#inner.latest(by.begin(time)));
  }

  #search(
    first: number | undefined,
    onward: (time: number, by: Excluder) => number | undefined,
  ): number | undefined {
    let time = first;
    for (let cost = 0, years = 0; time !== undefined; ) {
      const by = excluderAt(this.#excluders, time)?.excluder;
      if (by === undefined) return time;
      if (cost >= this.#maxCost || years >= this.#maxYears) return undefined;
      const year = yearOf(time);
      time = onward(time, by);
      cost += STEP + this.#excluders.length;
      if (time !== undefined && yearOf(time) !== year) years++;
    }
    return undefined;
  }
}

function yearOf(time: number): number {
  return yearOfDays(Math.floor(time / DAY));
}

/** What takes an occurrence of the inner schedule away. */
export function excluderAt(excluders: readonly NamedExcluder[], time: number): NamedExcluder | undefined {
  for (const named of excluders) if (named.excluder.has(time)) return named;
  return undefined;
}
