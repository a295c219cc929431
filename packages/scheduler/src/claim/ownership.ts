import { shardOf } from "@carillon/core/internal";
import type { Lease, Store } from "@carillon/store";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import { keyOf, type Part } from "../part.js";

/** A node that missed more heartbeats than this is owed no share. */
const BEATS_MISSED = 2.5;
/** Time in ms for which the list of nodes is reused. */
const NODES_FOR = 2_000;
/** Time in ms for which a due shard is left to its owner; then the next node on the list helps, and the others a little later. */
const PATIENCE = 200;
const EACH_LATER = 50;
/** Time in ms for which a shard that another node holds is left to it, although it is not its share. */
const LEFT_FOR = 2_000;
/** Longest time in ms without a claim from a shard for which a node was slow, and not away. */
const BREAK = 5_000;

/**
 * The shards that this node owns. The owner keeps a shard's mutex from turn to turn, renewed at half its time, for as long as
 * something is due; an idle shard's mutex expires. Shares follow from the list of live nodes. They bind nobody: a shard whose
 * owner does nothing in time is taken from it, and the commit's fence makes that safe.
 */
export class Ownership {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #leases = new Map<string, Lease>();
  /** Since when this node has been late with a shard, and when it last claimed from it. */
  readonly #behind = new Map<string, { readonly since: number; readonly claimed: number }>();
  /** Shards that this node took from another: the list of nodes at that time. They are kept until the list changes. */
  readonly #taken = new Map<string, string>();
  /** Shards of this node's share that another node holds, and until when they are left to it. */
  readonly #left = new Map<string, number>();
  /** Ids of the live nodes, if this node is one of them. */
  #nodes: readonly string[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(store: Store, clock: ServerClock, settings: Settings) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Reads the list of live nodes, unless that was done shortly before. */
  async learn(): Promise<void> {
    const now = this.#clock.now();
    if (!this.#settings.shares || Math.abs(now - this.#readAt) < NODES_FOR) return;
    this.#readAt = now;
    const live = (await this.#store.registry.nodes()).filter(
      // A beat in the future was written before the clock of Redis went back.
      ({ beat, every }) => beat + BEATS_MISSED * every > now && beat <= now + every,
    );
    const ids = live.map(({ id }) => id);
    this.#nodes = ids.includes(this.#settings.nodeId) ? ids : undefined;
  }

  /** Whether this node claims from the shard: it owns it, or is the one to take it. */
  isMine(queue: string, shard: Part): boolean {
    const key = keyOf(queue, shard);
    const rank = this.#rank(queue, shard);
    if (this.#holds(key)) return rank === 0 || this.#taken.get(key) === this.#list;
    return rank === 0 && !((this.#left.get(key) ?? 0) > this.#clock.now());
  }

  /** Time in ms for which a due shard is left to another node. */
  patience(queue: string, shard: Part): number {
    return PATIENCE + EACH_LATER * Math.max(0, this.#rank(queue, shard) - 1);
  }

  /** Position after the node whose share the shard is, in the list of nodes; 0 also if the list is unknown. */
  #rank(queue: string, shard: Part): number {
    const nodes = this.#nodes;
    if (!nodes) return 0;
    const owner = (Number(shard) + shardOf(queue)) % nodes.length;
    return (nodes.indexOf(this.#settings.nodeId) - owner + nodes.length) % nodes.length;
  }

  get #list(): string {
    return this.#nodes?.join(" ") ?? "";
  }

  #holds(key: string): boolean {
    return (this.#leases.get(key)?.remaining ?? 0) > 0;
  }

  /** Takes or renews the mutex of a shard. @returns whether this node owns it now */
  async hold(queue: string, shard: Part): Promise<boolean> {
    const key = keyOf(queue, shard);
    const { mutexTtl } = this.#settings;
    const lease = this.#leases.get(key);
    if (
      !(lease && (lease.remaining >= mutexTtl / 2 || (lease.remaining > 0 && (await lease.extend(mutexTtl)))))
    ) {
      this.#forget(key);
      if (!this.#keep(key, await this.#store.lease(queue, shard, mutexTtl))) return false;
    }
    return true;
  }

  /** Notes that this node claims from a shard. @param head due time of its first task */
  claims(queue: string, shard: Part, head: number): void {
    const key = keyOf(queue, shard);
    const now = this.#clock.now();
    const before = this.#behind.get(key);
    const goesOn = before && head <= now && Math.abs(now - before.claimed) <= BREAK;
    this.#behind.set(key, { since: goesOn ? before.since : now, claimed: now });
  }

  /** Time since which this node has claimed from a shard without a break, and has always been late; infinite if it does not claim. */
  behindSince(queue: string, shard: Part): number {
    return this.#behind.get(keyOf(queue, shard))?.since ?? Number.POSITIVE_INFINITY;
  }

  /** Takes a shard from an owner that does nothing. @returns whether it is this node's now */
  async takeOver(queue: string, shard: Part): Promise<boolean> {
    const key = keyOf(queue, shard);
    const { mutexTtl } = this.#settings;
    if (!this.#keep(key, await this.#store.lease(queue, shard, mutexTtl))) {
      await this.#store.freeLease(queue, shard);
      if (!this.#keep(key, await this.#store.lease(queue, shard, mutexTtl))) return false;
    }
    this.#taken.set(key, this.#list);
    return true;
  }

  #keep(key: string, lease: Lease | undefined): boolean {
    if (lease) {
      this.#leases.set(key, lease);
      this.#left.delete(key);
    } else {
      this.#behind.delete(key);
      this.#left.set(key, this.#clock.now() + LEFT_FOR);
    }
    return lease !== undefined;
  }

  /** Gives a shard up: its share is another node's. */
  async giveUp(queue: string, shard: Part): Promise<void> {
    const key = keyOf(queue, shard);
    const lease = this.#leases.get(key);
    this.#forget(key);
    this.#behind.delete(key);
    await lease?.release();
  }

  #forget(key: string): void {
    this.#leases.delete(key);
    this.#taken.delete(key);
  }

  /** Gives all shards up. */
  async stop(): Promise<void> {
    const leases = [...this.#leases.values()];
    this.#leases.clear();
    await Promise.all(leases.map((lease) => lease.release()));
  }
}
