import type { Store } from "@carillon/store";
import type { Reconciled } from "./events.js";

/** Settles what no Carillon worker settled, and clears away what is over. */
export class Reconciler {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** @param goOn asked after each batch; `more`: it said no, and something is left */
  async reconcile(queue: string, goOn: () => boolean): Promise<{ seen: Reconciled[]; more: boolean }> {
    const seen: Reconciled[] = [];
    let [more, cleared] = [true, false];
    do {
      const report = await this.#store.runs.reconcile(queue);
      for (const [run, what] of report.seen) seen.push({ queue, run, what });
      more = report.more;
      cleared ||= report.cleared;
      for (const name of report.lingered) {
        // It may have been put again meanwhile.
        if (await this.#store.tasks.delete(name, "finished"))
          seen.push({ queue, run: `${name.owner}/${name.id}`, what: "removed" });
      }
    } while (more && goOn());
    if (cleared || seen.some(({ what }) => what === "removed"))
      await this.#store.registry.forgetIfEmpty(queue);
    return { seen, more };
  }
}
