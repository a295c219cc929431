import { DAY, yearOfDays } from "../civil.js";
import type { CompiledSchedule } from "../types.js";
import type { Excluder, Span } from "./excluder.js";

/** An excluder and its name for people. */
export interface NamedExcluder {
  readonly excluder: Excluder;
  readonly label: string;
}

/** The search reached its limit of excluded times, and there are more. */
export const GAVE_UP: unique symbol = Symbol("gave up");

/**
 * Highest cost of one search, in calls of excluders. A search leaps over excluded days and hours at once, and checks all others
 * time by time.
 */
const MAX_COST = 20_000;
/** Cost of a step to another time, in calls of excluders. */
const STEP = 4;
/** Most years of one search, and least of each if several share it: in each year, a zone's offsets are read from Intl. */
const MAX_YEARS = 32;
const LEAST_YEARS = 4;

export class ExcludingSchedule implements CompiledSchedule {
  readonly #maxYears: number;
  /** Number of excluded times that one search passes over: each day or hour that it leaps over counts once. */
  readonly limit: number;

  /** @param share number of such schedules that one search reads */
  constructor(
    private readonly inner: CompiledSchedule,
    private readonly excluders: readonly NamedExcluder[],
    share = 1,
  ) {
    this.#maxYears = Math.max(MAX_YEARS / share, LEAST_YEARS);
    this.limit = Math.ceil(MAX_COST / share / (STEP + excluders.length));
  }

  next(after: number): number | undefined {
    const found = this.search(after);
    return found === GAVE_UP ? undefined : found;
  }

  latest(at: number): number | undefined {
    const found = this.searchBack(at);
    return found === GAVE_UP ? undefined : found;
  }

  /** Searches like `next`, but distinguishes a search that was too long from one that found no time. */
  search(after: number): number | undefined | typeof GAVE_UP {
    return this.#search(this.inner.next(after), (time, span) =>
      this.inner.next(span === undefined ? time : span.end - 1),
    );
  }

  /** Searches like `latest`, with the same distinction. */
  searchBack(at: number): number | undefined | typeof GAVE_UP {
    return this.#search(this.inner.latest(at), (time, span) => this.inner.latest((span?.start ?? time) - 1));
  }

  #search(
    first: number | undefined,
    onward: (time: number, span: Span | undefined) => number | undefined,
  ): number | undefined | typeof GAVE_UP {
    let time = first;
    for (let passed = 0, years = 0; time !== undefined; passed++) {
      const by = excluderAt(this.excluders, time);
      if (by === undefined) return time;
      if (years >= this.#maxYears) return undefined;
      if (passed >= this.limit) return GAVE_UP;
      const before = time;
      time = onward(time, by.excluder.span(time));
      if (time !== undefined && yearOf(time) !== yearOf(before)) years++;
    }
    return undefined;
  }
}

function yearOf(time: number): number {
  return yearOfDays(Math.floor(time / DAY));
}

/** The excluder that removes an occurrence of the inner schedule, if there is one. */
export function excluderAt(excluders: readonly NamedExcluder[], time: number): NamedExcluder | undefined {
  for (const named of excluders) if (named.excluder.has(time)) return named;
  return undefined;
}
