import { createHash } from "node:crypto";
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
const EACH_LATER = 200;
/** Time in ms for which a shard that another node holds is left to it, although it is not its share. */
const LEFT_FOR = 2_000;

/**
 * The shards that this node owns. The owner keeps a shard's mutex from turn to turn, renewed at half its time, for as long as
 * something is due; an idle shard's mutex expires. All shards of a queue are one node's, because fuller batches cost less; which
 * node's follows from the list of live nodes. That binds nobody: a shard whose owner does nothing in time is taken from it, and
 * the commit's fence makes that safe.
 */
export class Ownership {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #leases = new Map<string, Lease>();
  /** Shards that this node took from another: the list of nodes at that time. They are kept until the list changes. */
  readonly #taken = new Map<string, string>();
  /** Shards of this node's share that another node holds, and until when they are left to it. */
  readonly #left = new Map<string, number>();
  /** Ids of the live nodes, if this node is one of them. */
  #nodes: readonly string[] | undefined;
  /** Positions of this node by queue. */
  readonly #ranks = new Map<string, number>();
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
    const ids = live.map(({ id }) => id).sort();
    const before = this.#list;
    this.#nodes = ids.includes(this.#settings.nodeId) ? ids : undefined;
    if (this.#list !== before) this.#ranks.clear();
  }

  /** Whether this node claims from the shard: it owns it, or is the one to take it. */
  isMine(queue: string, shard: Part): boolean {
    const key = keyOf(queue, shard);
    const rank = this.#rank(queue);
    if (this.#holds(key)) return rank === 0 || this.#taken.get(key) === this.#list;
    return rank === 0 && !((this.#left.get(key) ?? 0) > this.#clock.now());
  }

  /** Time in ms for which a due shard is left to another node. */
  patience(queue: string): number {
    return PATIENCE + EACH_LATER * Math.max(0, this.#rank(queue) - 1);
  }

  /** Position of this node in the queue's own order of live nodes; 0, whose share its shards are, also if the nodes are unknown. */
  #rank(queue: string): number {
    const nodes = this.#nodes;
    if (!nodes) return 0;
    let rank = this.#ranks.get(queue);
    if (rank === undefined) {
      // A node that joins or leaves changes the order of the others for no queue.
      const place = (id: string) => createHash("sha1").update(`${queue} ${id}`).digest("hex");
      const own = place(this.#settings.nodeId);
      rank = nodes.filter((id) => place(id) < own).length;
      this.#ranks.set(queue, rank);
    }
    return rank;
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
    if (lease && lease.remaining >= mutexTtl / 2) return true;
    if (lease && lease.remaining > 0 && (await lease.extend(mutexTtl))) return true;
    this.#forget(key);
    return this.#keep(key, await this.#store.lease(queue, shard, mutexTtl));
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
      this.#left.set(key, this.#clock.now() + LEFT_FOR);
    }
    return lease !== undefined;
  }

  /** Gives a shard up: its share is another node's. */
  async giveUp(queue: string, shard: Part): Promise<void> {
    const key = keyOf(queue, shard);
    const lease = this.#leases.get(key);
    this.#forget(key);
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
