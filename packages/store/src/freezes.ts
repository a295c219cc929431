import { ALERTS_QUEUE } from "@carillon/core";
import { type Freeze, isThawed } from "@carillon/core/internal";
import { READ_TIME } from "./calendars.js";
import { isFreeze } from "./claim/frozen.js";
import type { NamespaceKeys } from "./keys.js";
import type { Link } from "./redis/link.js";
import { FACTS } from "./script/facts.js";
import { NEXT } from "./script/libraries.js";
import { answers, script } from "./script/script.js";
import type { Scripts } from "./script/scripts.js";

const CHANGE_FREEZES = script("change-freezes", {
  keys: ["freezes"],
  args: ["id", "freeze", "lifted"],
  answer: answers<number>(),
});

const COPY_FREEZES = script("copy-freezes", {
  keys: ["frozen", "held", "next"],
  args: ["from", "revision", "list"],
  uses: [NEXT],
  answer: answers<[copied: "0" | "1", left: number]>(),
});

/**
 * The freezes of a namespace. Each queue has a copy in its own cluster slot, which claims read and their commits check: a freeze holds
 * everywhere as soon as it is copied, also against a node that decided before it came.
 */
export class FreezeRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;
  readonly #scripts: Scripts;

  constructor(link: Link, keys: NamespaceKeys, scripts: Scripts) {
    this.#link = link;
    this.#keys = keys;
    this.#scripts = scripts;
  }

  /** All freezes as stored, those that are over too. */
  async list(): Promise<Freeze[]> {
    return (await this.#read()).list;
  }

  /** The time of Redis, UTC ms. */
  time(): Promise<number> {
    return this.#scripts.run(READ_TIME, { any: this.#keys.freezes });
  }

  /** Stores a freeze. It holds in all queues when this resolves. Put again, it changes nothing. */
  async put(freeze: Freeze): Promise<void> {
    await this.#change({ id: freeze.id, freeze: JSON.stringify(freeze) });
    await this.copyTo(await this.#queues());
  }

  /** Lifts freezes. Returns whether there were any. */
  async lift(...ids: readonly string[]): Promise<boolean> {
    const gone = await this.#change({ lifted: ids.join(" ") });
    // Copies in any case: the process that lifted it may have died before it could.
    await this.copyTo(await this.#queues());
    return gone > 0;
  }

  /** Drops freezes that are over, and mends copies that differ: a process may have died before it had made them all. */
  async mend(queues: readonly string[]): Promise<void> {
    const [{ revision, list }, now] = await Promise.all([this.#read(), this.time()]);
    const over = list.filter((freeze) => isThawed(freeze, now)).map(({ id }) => id);
    if (over.length > 0) await this.lift(...over);
    else {
      const done = await Promise.all(queues.map((queue) => this.#isCopied(queue, revision)));
      await this.copyTo(queues.filter((_, i) => !done[i]));
    }
  }

  /** Copies the freezes to these queues. */
  async copyTo(queues: readonly string[]): Promise<void> {
    // Alerts are delivered during a freeze too.
    await Promise.all(queues.filter((queue) => queue !== ALERTS_QUEUE).map((queue) => this.#copy(queue)));
  }

  /**
   * Replaces only the copy that was there before the freezes were read: another process may have made a newer one meanwhile, and a
   * freeze that was acknowledged must hold.
   */
  async #copy(queue: string): Promise<void> {
    const { frozen, held, next } = this.#keys.queue(queue);
    for (;;) {
      const from = await this.#copied(queue);
      const { revision, list } = await this.#read();
      const copy = { from, revision, list: list.length === 0 ? "" : JSON.stringify(list) };
      const [copied, left] = await this.#scripts.run(COPY_FREEZES, { frozen, held, next }, copy);
      if (copied === "1" && left === 0) return;
    }
  }

  async #copied(queue: string): Promise<string> {
    return (await this.#link.ask((client) => client.hget(this.#keys.queue(queue).frozen, "rev"))) ?? "";
  }

  /** Whether a queue has these freezes, and each task that the ones before held was checked again. */
  async #isCopied(queue: string, revision: string): Promise<boolean> {
    const { frozen, held } = this.#keys.queue(queue);
    const [copied, at] = await this.#link.ask((client) => client.hmget(frozen, "rev", "at"));
    if ((copied ?? "") !== revision) return false;
    return (await this.#link.ask((client) => client.zcount(held, "-inf", at ?? "+inf"))) === 0;
  }

  async #queues(): Promise<string[]> {
    return this.#link.ask((client) => client.hkeys(this.#keys.queues));
  }

  #change(change: { id?: string; freeze?: string; lifted?: string }): Promise<number> {
    return this.#scripts.run(
      CHANGE_FREEZES,
      { freezes: this.#keys.freezes },
      { id: "", freeze: "", lifted: "", ...change },
    );
  }

  async #read(): Promise<{ revision: string; list: Freeze[] }> {
    const all = await this.#link.ask((client) => client.hgetall(this.#keys.freezes));
    const { [FACTS.revision]: revision = "", ...stored } = all;
    const list = Object.values(stored).flatMap(decode);
    return { revision, list: list.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1)) };
  }
}

/** Empty if the text is corrupt or foreign. */
function decode(text: string): Freeze[] {
  try {
    const freeze = JSON.parse(text) as Partial<Freeze> | null;
    return isFreeze(freeze) ? [freeze] : [];
  } catch {
    return [];
  }
}
