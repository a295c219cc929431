/** Longest time that one script should block Redis, in ms. */
const TARGET = 8;
const SMALLEST = 10;
const LARGEST = 60;

/** Number of tasks in one commit: halved if a script blocked Redis for too long, grown slowly while it does not. */
export class BatchSize {
  #size = 40;

  get current(): number {
    return this.#size;
  }

  /** @param took time in ms for which the commit blocked Redis @param tasks number of tasks in it */
  learn(took: number, tasks: number): void {
    if (took > TARGET * 1.5) this.#size = Math.max(SMALLEST, Math.floor(this.#size / 2));
    else if (took < TARGET && tasks >= this.#size) this.#size = Math.min(LARGEST, this.#size + 5);
  }
}
