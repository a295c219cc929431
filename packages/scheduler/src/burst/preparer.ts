import type { ClaimItem, Lease, Store } from "@carillon/store";
import type { ClaimReport, Committer } from "../claim/committer.js";
import type { Decider } from "../claim/decider.js";
import { keep } from "../claim/lease.js";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import { Preparations, Prepared, WINDOW } from "./prepared.js";

/** Reads, decides and packs claims before they are due, and sends them at their time. */
export class Preparer {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #decider: Decider;
  readonly #committer: Committer;
  readonly #preparations = new Preparations();

  constructor(store: Store, clock: ServerClock, settings: Settings, decider: Decider, committer: Committer) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#decider = decider;
    this.#committer = committer;
  }

  /**
   * Reads and decides the tasks that come due at `at`, so that only the commit is left to do then. The commit's checks make it
   * safe: a task that has changed meanwhile is `STALE` there, and is read again. Decisions that depend on the state of a run are
   * left out.
   *
   * @param goOn called before each read
   */
  async prepare(queue: string, shard: number, at: number, goOn: () => boolean): Promise<void> {
    const { claims } = this.#store;
    const prepared = new Prepared(at, this.#settings.grace);
    this.#preparations.set(queue, shard, prepared);
    let names: readonly string[] | undefined;
    while (names?.length !== 0 && !prepared.full && !this.#preparations.full && goOn()) {
      const limit = this.#committer.size.current;
      const which = names ? { names: names.slice(0, limit) } : { window: WINDOW };
      const { entries, rest, more } = await claims.readDue(queue, shard, limit, { by: at, ...which });
      names = names?.slice(limit) ?? rest;
      if (more) prepared.complete = false;
      const decided = await this.#decider.decide(queue, entries, at);
      const items = prepared.choose(entries, decided.filter(isSimplyEnqueued));
      if (items.length > 0) prepared.add(claims.pack(queue, shard, items, this.#committer.nextClaim(), at));
    }
    if (names?.length !== 0) prepared.complete = false;
  }

  /** Drops old preparations. */
  forget(now: number): void {
    this.#preparations.forget(now);
  }

  /**
   * Sends the prepared commits of a shard if their time has come.
   *
   * @param goOn called after each commit; if false, the rest stays prepared for the next turn
   * @returns whether to go on with tasks that were not prepared; if all were, the turn's last read of `next` shows whether more is due
   */
  async commit(
    queue: string,
    shard: number,
    lease: Lease,
    goOn: () => boolean,
    report: ClaimReport,
  ): Promise<boolean> {
    const prepared = this.#preparations.get(queue, shard);
    if (!prepared || this.#clock.now() < prepared.at) return true;
    const { commits } = prepared;
    const before = report.refused.length;
    while (prepared.holds(this.#clock.now())) {
      const [commit] = commits;
      if (!commit) break;
      if (this.#clock.holding) return false;
      const refused = report.refused.length;
      const send = () => this.#store.claims.send(commit);
      const progressed = await this.#committer.commit(queue, commit.items.length, send, report);
      if (!progressed && report.refused.slice(refused).every(({ status }) => status === "EARLY")) {
        // Not due yet by the clock of Redis.
        report.refused.length = refused;
        report.progress = true;
        return false;
      }
      commits.shift();
      if (!progressed) return false;
      // Tasks that changed may now be more urgent than the rest of this preparation.
      if (prepared.prioritized && report.refused.length > refused) break;
      if (!goOn()) return false;
      await keep(lease, this.#settings.mutexTtl);
    }
    this.#preparations.drop(queue, shard, prepared);
    return !prepared.complete || commits.length > 0 || report.refused.length > before;
  }
}

/** Other decisions depend on the state of runs at that time. */
function isSimplyEnqueued({ decision }: ClaimItem): boolean {
  return decision.enqueue !== undefined && decision.skipped.length === 0;
}
