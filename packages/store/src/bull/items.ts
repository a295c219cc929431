import type { NamespaceKeys } from "../keys.js";
import type { Link } from "../redis/link.js";
import { bullChildren } from "./bull-keys.js";

/** Items of a fan-out: BullMQ's children of a run's job. */
export class ItemRepository {
  readonly #link: Link;
  readonly #keys: NamespaceKeys;

  constructor(link: Link, keys: NamespaceKeys) {
    this.#link = link;
    this.#keys = keys;
  }

  /** Job ids of the items that a run has, done or not. */
  async ids(queue: string, run: string): Promise<Set<string>> {
    const { job } = this.#keys.queue(queue);
    const { left, succeeded, failed } = bullChildren(job(run));
    // Not BullMQ's getDependencies: it takes an answer that was lost for an empty one. What is left comes first: an item that
    // ends meanwhile is then seen twice rather than never.
    const found = await this.#link.ask((client) =>
      Promise.all([client.smembers(left), client.hkeys(succeeded), client.hkeys(failed)]),
    );
    return new Set(found.flat().map((key) => key.slice(job("").length)));
  }

  /** Forgets the items of a run that are done. */
  async forgetDone(queue: string, run: string): Promise<void> {
    const { succeeded, failed } = bullChildren(this.#keys.queue(queue).job(run));
    await this.#link.ask((client) => client.unlink(succeeded, failed));
  }
}
