// Taken once: a test may fake timers later.
const later = globalThis.setTimeout;
const cancel = globalThis.clearTimeout;

/** Signals that something happened, so that waiting code checks again. */
export class Pulse {
  #count = 0;
  readonly #waiting = new Set<() => void>();

  /** Read it before a check, and pass it to `after`, so that nothing in between is missed. */
  get count(): number {
    return this.#count;
  }

  beat(): void {
    this.#count += 1;
    for (const go of [...this.#waiting]) go();
  }

  /** Resolves with the first beat since `count`, or after `ms`. */
  after(count: number, ms: number): Promise<void> {
    if (this.#count !== count) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = later(() => go(), ms);
      const go = () => {
        cancel(timer);
        this.#waiting.delete(go);
        resolve();
      };
      this.#waiting.add(go);
    });
  }
}

/** Lets all other ready callbacks run first. */
export function othersFirst(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
