interface Call<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer | PromiseLike<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches the calls for one key that are made within one event-loop turn. Such calls are common, because the answers to
 * many commands arrive in one packet; a batch costs Redis and this process a fraction of the single calls.
 */
export class CallBatcher<Item, Answer> {
  readonly #most: number;
  readonly #send: (key: string, items: readonly Item[]) => Promise<(Answer | Promise<Answer>)[]>;
  readonly #calls = new Map<string, Call<Item, Answer>[]>();

  /** @param most items per batch @param send sends a batch; returns an answer for each item, in their order */
  constructor(
    most: number,
    send: (key: string, items: readonly Item[]) => Promise<(Answer | Promise<Answer>)[]>,
  ) {
    this.#most = most;
    this.#send = send;
  }

  call(key: string, item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const one = { item, resolve, reject };
      const calls = this.#calls.get(key);
      if (calls) {
        calls.push(one);
        return;
      }
      this.#calls.set(key, [one]);
      // Tests fake timers and immediates, but not this.
      process.nextTick(() => this.#sendAll(key));
    });
  }

  #sendAll(key: string): void {
    const calls = this.#calls.get(key) ?? [];
    this.#calls.delete(key);
    for (let i = 0; i < calls.length; i += this.#most)
      void this.#sendBatch(key, calls.slice(i, i + this.#most));
  }

  async #sendBatch(key: string, calls: readonly Call<Item, Answer>[]): Promise<void> {
    try {
      const items = calls.map(({ item }) => item);
      const answers = await this.#send(key, items);
      for (const [i, { resolve }] of calls.entries()) resolve(answers[i] as Answer);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
}
