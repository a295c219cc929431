interface Asked<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer | PromiseLike<Answer>) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What is asked about one thing before the event loop goes on, as when the answers to many come in one packet, goes together: it costs
 * Redis, and us, a fraction.
 */
export class Gathering<Item, Answer> {
  readonly #most: number;
  readonly #send: (about: string, items: readonly Item[]) => Promise<(Answer | Promise<Answer>)[]>;
  readonly #asked = new Map<string, Asked<Item, Answer>[]>();

  /** @param most items that are sent together @param send answers each, in their order */
  constructor(
    most: number,
    send: (about: string, items: readonly Item[]) => Promise<(Answer | Promise<Answer>)[]>,
  ) {
    this.#most = most;
    this.#send = send;
  }

  ask(about: string, item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const one = { item, resolve, reject };
      const asked = this.#asked.get(about);
      if (asked) {
        asked.push(one);
        return;
      }
      this.#asked.set(about, [one]);
      // Unlike a timer or an immediate, nothing that tests fake.
      process.nextTick(() => this.#sendAll(about));
    });
  }

  #sendAll(about: string): void {
    const asked = this.#asked.get(about) ?? [];
    this.#asked.delete(about);
    for (let i = 0; i < asked.length; i += this.#most) {
      void this.#sendSome(about, asked.slice(i, i + this.#most));
    }
  }

  async #sendSome(about: string, asked: readonly Asked<Item, Answer>[]): Promise<void> {
    try {
      const items = asked.map(({ item }) => item);
      const answers = await this.#send(about, items);
      for (const [i, { resolve }] of asked.entries()) resolve(answers[i] as Answer);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}
