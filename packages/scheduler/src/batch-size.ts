/** One script should not keep Redis from others for longer than this, in ms. */
const TARGET = 8;
const SMALLEST = 10;
const LARGEST = 60;

/**
 * How many tasks go into one commit. The round trip bounds from above how long the script held Redis: halve when it
 * was too long, grow slowly while it is well below.
 */
export class BatchSize {
  #size = 40;

  get current(): number {
    return this.#size;
  }

  /** @param took the commit's round trip in ms @param tasks how many it held */
  learn(took: number, tasks: number): void {
    if (took > TARGET * 1.5) this.#size = Math.max(SMALLEST, Math.floor(this.#size / 2));
    else if (took < TARGET && tasks >= this.#size) this.#size = Math.min(LARGEST, this.#size + 5);
  }
}
