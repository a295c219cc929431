import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./redis/link.js";
import { answers, script } from "./script/script.js";
import type { Scripts } from "./script/scripts.js";

const ADD_CHANGE = script("add-change", { keys: ["changes"], args: ["entry"], answer: answers<string>() });

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
 * after its change, and is lost if the process dies between the two.
 */
export class ChangeLog {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /**
   * Sends an entry without waiting for it. A failure is ignored, since the change is made already. A lost reply causes a resend, so an
   * entry may be stored twice.
   *
   * @param entry JSON
   */
  add(entry: string): void {
    const sent = this.#scripts.run(ADD_CHANGE, this.#keys, { entry }).catch(() => {});
    this.#underWay.add(sent);
    void sent.finally(() => this.#underWay.delete(sent));
  }

  /** Resolves when all entries that were sent are stored, or have failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /**
   * Entries, newest first; those that this store has sent are among them. @param before id of the last entry of the
   * page before; undefined: from the newest
   */
  async page(before: string | undefined, most: number): Promise<StoredChange[]> {
    await this.settled();
    const start = before === undefined ? "+" : `(${before}`;
    const found = await this.#link.ask((client) =>
      client.xrevrange(this.#keys.changes, start, "-", "COUNT", most),
    );
    return found.map(([id, [, at, , entry = ""]]) => ({ id, at: Number(at), entry }));
  }
}
