import { ALERTS_QUEUE } from "@carillon/core";
import { type Freeze, isThawed, type Quota, type QuotaScope, type Quotas } from "@carillon/core/internal";
import { READ_TIME } from "./calendars.js";
import { isFreeze, quotasIn } from "./claim/frozen.js";
import { ONCE_ARGS, type Once } from "./marks.js";
import { Repository } from "./repository.js";
import { FACTS } from "./script/facts.js";
import { NEXT, ONCE } from "./script/libraries.js";
import { answers, script } from "./script/script.js";

const CHANGE_FREEZES = script("change-freezes", {
  once: "mark",
  keys: ["freezes", "thawed", "marks"],
  args: [...ONCE_ARGS, "id", "freeze", "lifted[]"],
  uses: [ONCE],
  answer: answers<"OK" | "DONE" | "STALE">(),
});

const COPY_FREEZES = script("copy-freezes", {
  once: "mark",
  keys: ["frozen", "held", "next", "marks"],
  args: [...ONCE_ARGS, "revision", "list", "most", "again"],
  uses: [NEXT, ONCE],
  answer: answers<[word: "OK" | "STALE", left: number]>(),
});

/** Fields of quotas begin with this; no id of a freeze does. */
const QUOTA = "~quota:";

/**
 * The freezes of a namespace. Each queue has a copy in its own cluster slot, which claims read and their commits check: a
 * freeze holds everywhere as soon as it is copied, also for a node that decided before.
 */
export class FreezeRepository extends Repository {
  /** All freezes as stored, including expired ones. */
  async list(): Promise<Freeze[]> {
    return (await this.#read()).list;
  }

  /** The newest freezes that ended or were lifted within about a day, and their ends, UTC ms. */
  async ended(): Promise<(Freeze & { readonly ended: number })[]> {
    const found = await this.link.ask((client) => client.lrange(this.keys.thawed, 0, -1));
    return found.flatMap((text) => {
      const at = text.indexOf(" ");
      const deleted = Number(text.slice(0, at));
      return decode(text.slice(at + 1))
        .filter(isFreeze)
        .map((freeze) => ({ ...freeze, ended: Math.min(deleted, freeze.until ?? deleted) }));
    });
  }

  /** The time of Redis, UTC ms. */
  time(): Promise<number> {
    return this.scripts.run(READ_TIME, { any: this.keys.freezes });
  }

  /** The quotas of the namespace. They are stored and copied with the freezes. */
  async quotas(): Promise<Quotas> {
    return (await this.#read()).quotas;
  }

  /** @param quota empty: none @returns the one before */
  async setQuota(scope: QuotaScope, quota: Quota): Promise<Quota | undefined> {
    const id = `${QUOTA}${scope}`;
    const change =
      Object.keys(quota).length === 0
        ? { lifted: [id] }
        : { id, freeze: JSON.stringify({ scope, ...quota }) };
    const { before } = await this.marks.change(this.keys.marks, "freezes", async (once) => {
      const before = (await this.quotas()).get(scope);
      return (await this.#send({ ...once, ...change })) === "STALE" ? "STALE" : { before };
    });
    await this.copyTo(await this.#queues());
    return before;
  }

  /** Stores a freeze. It holds in all queues when this resolves. Put again, it changes nothing. */
  async put(freeze: Freeze): Promise<void> {
    await this.#store(freeze.id, JSON.stringify(freeze));
    await this.copyTo(await this.#queues());
  }

  /** Lifts freezes. Returns whether there were any. */
  async lift(...ids: readonly string[]): Promise<boolean> {
    const { freezes } = this.keys;
    const gone = await this.marks.change<boolean>(this.keys.marks, "freezes", async (once) => {
      const stored = await this.link.ask((client) => client.hmget(freezes, ...ids));
      const lifted = ids.filter((_, i) => stored[i] !== null);
      if (lifted.length === 0) return false;
      return (await this.#send({ ...once, lifted })) === "STALE" ? "STALE" : true;
    });
    // Copies in any case: the process that lifted it may have died before it could.
    await this.copyTo(await this.#queues());
    return gone;
  }

  /**
   * Deletes expired freezes, and repairs copies that differ: a process may have died before it had written all of them.
   */
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
    await Promise.all(queues.map((queue) => this.hold(queue)));
  }

  /** Copies the freezes to a queue. Returns the revision of those that hold there then; "" none. */
  async hold(queue: string): Promise<string> {
    // Alerts are delivered during a freeze too.
    return queue === ALERTS_QUEUE ? "" : this.#copy(queue);
  }

  /**
   * Replaces only the copy that was there before the freezes were read: another process may have made a newer one
   * meanwhile, and a freeze that was acknowledged must hold. The revision is read again at the end, since freezes may
   * have changed meanwhile.
   */
  async #copy(queue: string): Promise<string> {
    const { frozen, held, next, marks } = this.keys.queue(queue);
    for (let again = false; ; again = true) {
      const { revision, left } = await this.marks.change(marks, "frozen", async (once) => {
        const { revision, list, quotas } = await this.#read();
        const all = [...list, ...[...quotas].map(([scope, quota]) => ({ scope, ...quota }))];
        const copy = { revision, list: all.length === 0 ? "" : JSON.stringify(all), most: mostOf(quotas) };
        const keys = { frozen, held, next, marks };
        const [word, left] = await this.scripts.run(COPY_FREEZES, keys, { ...once, ...copy, again });
        return word === "STALE" ? word : { revision, left };
      });
      if (left === 0 && (await this.#revision()) === revision) return revision;
    }
  }

  /** Whether a queue has these freezes, and every task that the previous ones held was checked again. */
  async #isCopied(queue: string, revision: string): Promise<boolean> {
    const { frozen, held } = this.keys.queue(queue);
    const [copied, at] = await this.link.ask((client) => client.hmget(frozen, "rev", "at"));
    if ((copied ?? "") !== revision) return false;
    return (await this.link.ask((client) => client.zcount(held, "-inf", at ?? "+inf"))) === 0;
  }

  async #revision(): Promise<string> {
    return (await this.link.ask((client) => client.hget(this.keys.freezes, FACTS.revision))) ?? "";
  }

  async #queues(): Promise<string[]> {
    return this.link.ask((client) => client.hkeys(this.keys.queues));
  }

  async #store(id: string, freeze: string): Promise<void> {
    await this.marks.change(this.keys.marks, "freezes", (once) => this.#send({ ...once, id, freeze }));
  }

  #send(change: Once & { id?: string; freeze?: string; lifted?: readonly string[] }) {
    return this.scripts.run(CHANGE_FREEZES, this.keys, { id: "", freeze: "", lifted: [], ...change });
  }

  async #read(): Promise<{ revision: string; list: Freeze[]; quotas: Quotas }> {
    const all = await this.link.ask((client) => client.hgetall(this.keys.freezes));
    const { [FACTS.revision]: revision = "", ...stored } = all;
    const values = Object.values(stored).flatMap(decode);
    const list = values.filter(isFreeze);
    return {
      revision,
      list: list.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1)),
      quotas: quotasIn(values),
    };
  }
}

/** Empty if the text is corrupt or foreign. */
function decode(text: string): object[] {
  try {
    const value = JSON.parse(text) as object | null;
    return typeof value === "object" && value !== null ? [value] : [];
  } catch {
    return [];
  }
}

/** Number of jobs that may wait, by owner, as JSON for Lua; "" any number. */
function mostOf(quotas: Quotas): string {
  const most = [...quotas].flatMap(([scope, { waiting }]) =>
    waiting === undefined ? [] : [[scope === "all" ? FACTS.everyone : scope.slice("owner:".length), waiting]],
  );
  return most.length === 0 ? "" : JSON.stringify(Object.fromEntries(most));
}
