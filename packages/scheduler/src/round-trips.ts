/** Round trips of which the usual one is taken: an odd number, so that a single slow one does not count. */
const KEPT = 5;

/** Measures how long Redis takes to answer. */
export class RoundTrips {
  readonly #last: number[] = [];

  /** Calls Redis, and measures the time until its answer. */
  async measure<T>(call: () => Promise<T>): Promise<T> {
    const sent = performance.now();
    const answer = await call();
    this.#last.push(performance.now() - sent);
    if (this.#last.length > KEPT) this.#last.shift();
    return answer;
  }

  /** The median of the last few, in ms. Undefined before the first. */
  get usual(): number | undefined {
    const sorted = [...this.#last].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)];
  }
}
