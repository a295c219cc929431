import { newToken } from "./ids.js";
import { Repository } from "./repository.js";
import { answers, script } from "./script/script.js";

const ADD_CHANGE = script("add-change", {
  once: "number",
  keys: ["changes", "sent"],
  args: ["number", "entry"],
  answer: answers<string>(),
});

/** Entries read at once. */
const STEP = 500;

/** An entry of the change log as stored. */
export interface StoredChange {
  /** Id of the stream's entry; gives the next page. */
  readonly id: string;
  /** UTC ms of Redis time. */
  readonly at: number;
  /** JSON. */
  readonly entry: string;
}

/**
 * The change log of a namespace: one capped stream, in another cluster slot than the queues. So an entry is written
 * after its change, and is lost if the process dies between the two. The entry of a change that can be undone is written before it.
 */
export class ChangeLog extends Repository {
  readonly #sender = newToken();
  #number = 0;
  #newest: Promise<unknown> = Promise.resolve();

  /**
   * Sends an entry without waiting for it. A failure is ignored, since the change is made already.
   *
   * @param entry JSON
   */
  add(entry: string): void {
    this.put(entry).catch(() => {});
  }

  /** Stores the entry of a change that is not made yet. @param entry JSON @returns its id */
  put(entry: string): Promise<string> {
    this.#number += 1;
    const number = this.#number;
    const keys = { changes: this.keys.changes, sent: this.keys.sent(this.#sender) };
    // One after the other: numbers must arrive in their order, also after a lost reply.
    const stored = this.#newest.then(() => this.scripts.run(ADD_CHANGE, keys, { number, entry }));
    this.#newest = stored.catch(() => {});
    return stored;
  }

  /** Resolves when all entries that were sent are stored, or have failed. */
  async settled(): Promise<void> {
    await this.#newest;
  }

  /**
   * Entries, newest first; those that this store has sent are among them. @param before id of the last entry of the
   * page before; undefined: from the newest
   */
  async page(before: string | undefined, most: number): Promise<StoredChange[]> {
    await this.settled();
    const start = before === undefined ? "+" : `(${before}`;
    const found = await this.link.ask((client) =>
      client.xrevrange(this.keys.changes, start, "-", "COUNT", most),
    );
    return found.map(([id, [, at, , entry = ""]]) => ({ id, at: Number(at), entry }));
  }

  /** All entries, newest first. @param before as for `page` */
  async *newest(before?: string): AsyncGenerator<StoredChange> {
    for (let last = before; ; ) {
      const page = await this.page(last, STEP);
      yield* page;
      if (page.length < STEP) return;
      last = page.at(-1)?.id;
    }
  }
}
