/** What is done to one thing is done one after the other, in the order in which it was asked for; to different things, side by side. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>(name: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const turn = before ? before.then(act, act) : act();
    this.#last.set(name, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(name) === turn) this.#last.delete(name);
    }
  }
}
