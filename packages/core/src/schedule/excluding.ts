import type { Excluder } from "./excluder.js";
import type { CompiledSchedule } from "./types.js";

/** An excluder and what to call it. */
export interface NamedExcluder {
  readonly excluder: Excluder;
  readonly label: string;
}

/**
 * How many times a search asks an excluder before it gives up. Excluders leap over whole minutes, hours and days where
 * they can, so that only those which eat a schedule time by time come this far. What is then left is taken for nothing.
 */
const MAX_QUESTIONS = 20_000;

/** A schedule without the times that are taken away. */
export class ExcludingSchedule implements CompiledSchedule {
  readonly #inner: CompiledSchedule;
  readonly #excluders: readonly NamedExcluder[];
  readonly #maxQuestions: number;

  /** @param share how many such schedules one search asks */
  constructor(inner: CompiledSchedule, excluders: readonly NamedExcluder[], share = 1) {
    this.#inner = inner;
    this.#excluders = excluders;
    this.#maxQuestions = MAX_QUESTIONS / share;
  }

  next(after: number): number | undefined {
    let time = this.#inner.next(after);
    for (let asked = 0; time !== undefined && asked < this.#maxQuestions; ) {
      const found = excluderAt(this.#excluders, time);
      if (found === undefined) return time;
      asked += this.#excluders.length;
      time = this.#inner.next(found.excluder.end(time) - 1);
    }
    return undefined;
  }

  latest(at: number): number | undefined {
    let time = this.#inner.latest(at);
    for (let asked = 0; time !== undefined && asked < this.#maxQuestions; ) {
      const found = excluderAt(this.#excluders, time);
      if (found === undefined) return time;
      asked += this.#excluders.length;
      time = this.#inner.latest(found.excluder.begin(time));
    }
    return undefined;
  }
}

/** What takes an occurrence of the inner schedule away. */
export function excluderAt(excluders: readonly NamedExcluder[], time: number): NamedExcluder | undefined {
  for (const named of excluders) if (named.excluder.has(time)) return named;
  return undefined;
}
