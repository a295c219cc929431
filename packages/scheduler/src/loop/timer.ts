/** `setTimeout` takes 31 bits of milliseconds; anything longer would fire at once. */
const LONGEST = 2 ** 31 - 1;

/** The only timer of the node's loop. */
export class Timer {
  #handle: NodeJS.Timeout | undefined;
  readonly #fire: () => void;

  constructor(fire: () => void) {
    this.#fire = fire;
  }

  /** Fires once after `ms`; replaces the earlier setting. */
  arm(ms: number): void {
    this.disarm();
    this.#handle = setTimeout(this.#fire, Math.min(Math.max(0, Math.ceil(ms)), LONGEST));
  }

  disarm(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
  }
}
