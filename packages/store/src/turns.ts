/** One that takes longer, in ms, keeps the others waiting no longer: its answer may never come. */
const LONGEST = 1_000;

/** What is done to one thing is done one after the other, in the order in which it was asked for; to different things, side by side. */
export class Turns {
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
