/** Lets `most` in at a time; the others wait in the order in which they came. */
export class Semaphore {
  #free: number;
  #closed = false;
  readonly #waiting: ((entered: boolean) => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves to false if it was closed meanwhile. Each caller that entered must leave. */
  async enter(): Promise<boolean> {
    if (this.#closed) return false;
    if (this.#free === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#free -= 1;
    return true;
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next(true);
    else this.#free += 1;
  }

  /** Closes it: no caller enters any more. */
  close(): void {
    this.#closed = true;
    for (const turn of this.#waiting.splice(0)) turn(false);
  }
}
