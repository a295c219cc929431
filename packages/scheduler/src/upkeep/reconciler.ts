import type { Store } from "@carillon/store";
import type { Reconciled } from "../events.js";

/** Settles runs that no Carillon worker settled, and removes jobs, records and finished tasks whose time is over. */
export class Reconciler {
  constructor(private readonly store: Store) {}

  /** @param goOn called after each batch; if false, the rest waits for another visit. @returns `more`: whether work is left */
  async reconcile(queue: string, goOn: () => boolean): Promise<{ seen: Reconciled[]; more: boolean }> {
    const seen: Reconciled[] = [];
    let [more, cleared] = [true, false];
    do {
      const report = await this.store.runs.reconcile(queue);
      for (const [run, what] of report.seen) seen.push({ queue, run, what });
      more = report.more;
      cleared ||= report.cleared;
      for (const name of report.lingered) {
        // Only if it was not put again meanwhile.
        if (await this.store.tasks.delete(name, "finished"))
          seen.push({ queue, run: `${name.owner}/${name.id}`, what: "removed" });
      }
    } while (more && goOn());
    if (cleared || seen.some(({ what }) => what === "removed"))
      await this.store.registry.forgetIfEmpty(queue);
    return { seen, more };
  }
}
