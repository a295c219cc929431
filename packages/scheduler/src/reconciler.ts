import type { Store } from "@carillon/store";
import type { Reconciled } from "./events.js";

/** Settles what no Carillon worker settled, and clears away what is over. */
export class Reconciler {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async reconcile(queue: string): Promise<Reconciled[]> {
    const seen: Reconciled[] = [];
    for (;;) {
      const report = await this.#store.runs.reconcile(queue);
      for (const [run, what] of report.seen) seen.push({ queue, run, what });
      if (!report.more) break;
    }
    if (seen.some(({ what }) => what === "removed")) await this.#store.registry.forgetIfEmpty(queue);
    return seen;
  }
}
