/** An act that takes longer, in ms, loses the lock: its answer may never arrive. */
const LONGEST = 1_000;

/** Acts under one name run one after the other, in the order of their calls; acts under different names run at the same time. */
export class KeyedLock {
  readonly #last = new Map<string, Promise<void>>();

  /** @param names each once */
  async take<T>(names: readonly string[], act: () => Promise<T>): Promise<T> {
    const before = names.map((name) => this.#last.get(name));
    let pass = () => {};
    const turn = new Promise<void>((resolve) => {
      pass = resolve;
    });
    for (const name of names) this.#last.set(name, turn);
    await Promise.all(before);
    const over = () => {
      pass();
      for (const name of names) if (this.#last.get(name) === turn) this.#last.delete(name);
    };
    const timer = setTimeout(over, LONGEST);
    try {
      return await act();
    } finally {
      clearTimeout(timer);
      over();
    }
  }
}
