/** Longest time that one script should block Redis, in ms. */
const TARGET = 8;
const SMALLEST = 10;
const LARGEST = 60;

/**
 * Number of tasks in one commit. The round trip is an upper bound for the time that the script blocked Redis: halves
 * the size when it was too long, and grows it slowly while it is below the target.
 */
export class BatchSize {
  #size = 40;

  get current(): number {
    return this.#size;
  }

  /** @param took the commit's round trip in ms @param tasks number of tasks in it */
  learn(took: number, tasks: number): void {
    if (took > TARGET * 1.5) this.#size = Math.max(SMALLEST, Math.floor(this.#size / 2));
    else if (took < TARGET && tasks >= this.#size) this.#size = Math.min(LARGEST, this.#size + 5);
  }
}
