import { shardOf } from "@carillon/core/internal";
import type { ClaimItem, Lease, Store } from "@carillon/store";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import type { Part } from "../part.js";
import type { ClaimReport, Committer } from "./committer.js";
import type { Decider } from "./decider.js";
import { keep } from "./lease.js";

/** Most due tasks of a shard that are passed over because they cannot be decided here. */
const PASS_AT_MOST = 2_000;

/** Turns the due tasks of shards into jobs: read, decide, commit, until a short batch. */
export class Claimer {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #decider: Decider;
  readonly #committer: Committer;

  constructor(store: Store, clock: ServerClock, settings: Settings, decider: Decider, committer: Committer) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#decider = decider;
    this.#committer = committer;
  }

  /**
   * Claims the due tasks of these shards. Several shards are claimed in one batch, in the order of due times.
   *
   * @param leases the mutexes of the shards
   * @param goOn called after each batch; if false, the rest waits for another turn
   * @param report receives the results
   * @returns false if several shards hold more than one batch, or tasks that cannot be decided here: each must be claimed separately
   */
  async claim(
    queue: string,
    leases: ReadonlyMap<Part, Lease>,
    goOn: () => boolean,
    report: ClaimReport,
  ): Promise<boolean> {
    const [shard = 0, ...others] = [...leases.keys()].map(Number);
    let pass: number | undefined;
    let chosen: readonly string[] = [];
    let beyond = true;
    while (pass === undefined || pass < PASS_AT_MOST) {
      const limit = this.#committer.size.current;
      const names = chosen.slice(0, limit);
      const sentAt = this.#clock.mark();
      const which = others.length > 0 ? { others } : names.length > 0 ? { names } : { pass };
      const { now, more, entries, rest } = await this.#store.claims.readDue(queue, shard, limit, which);
      this.#clock.observe(now, sentAt);
      if (others.length > 0 && more) return false;
      if (names.length > 0) chosen = chosen.slice(limit);
      else [chosen, beyond] = [rest, more];
      const left = beyond || chosen.length > 0;
      // Another node has claimed the chosen tasks: go on with the rest.
      if (names.length > 0 && entries.length === 0 && left && goOn()) continue;
      // Either nothing is due yet, because the timer was a little early (no reason to rest), or all due tasks were passed over.
      if (entries.length === 0) report.progress ||= !pass;
      if (entries.length === 0 || this.#clock.holding) return true;

      const items = await this.#decider.decide(queue, entries, now);
      // Tasks that are left to newer nodes stay due, at the head: they must not block the others.
      const undecided = entries.length - items.length;
      if (others.length > 0 && undecided > 0) return false;
      if (pass !== undefined) pass += undecided;
      else if (undecided > 0) [pass, chosen, beyond] = [0, [], true];
      if (items.length > 0 && !(await this.#commit(queue, items, now, report))) return true;
      if (!left || !goOn()) return true;
      for (const lease of leases.values()) await keep(lease, this.#settings.mutexTtl);
    }
    return true;
  }

  /** Puts consecutive items of one shard into one commit; Redis runs the commits in order. @returns whether to go on */
  async #commit(
    queue: string,
    items: readonly ClaimItem[],
    now: number,
    report: ClaimReport,
  ): Promise<boolean> {
    const commits: { shard: number; items: ClaimItem[] }[] = [];
    for (const item of items) {
      const shard = shardOf(item.entry.local);
      const last = commits.at(-1);
      if (last?.shard === shard) last.items.push(item);
      else commits.push({ shard, items: [item] });
    }
    const progressed = await Promise.all(
      commits.map((one) => {
        const by = this.#committer.nextClaim();
        const send = () => this.#store.claims.commit(queue, one.shard, one.items, by, now);
        return this.#committer.commit(queue, one.items.length, send, report);
      }),
    );
    return progressed.some(Boolean);
  }
}
