import { createHash } from "node:crypto";
import type { Lease, Store } from "@carillon/store";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";

/** A node that missed more heartbeats than this is owed no share. */
const BEATS_MISSED = 2.5;
/** Time in ms for which the list of nodes is reused. */
const NODES_FOR = 2_000;
/** Time in ms for which due shards are left to their owner; then the next node on the list helps, and the others a little later. */
const PATIENCE = 200;
const EACH_LATER = 200;
/** Time in ms for which shards that another node holds are left to it, although they are not its share. */
const LEFT_FOR = 2_000;
/** The part of a queue whose mutex all its shards have in common. */
const SHARDS = "shards";

/**
 * The queues whose shards this node owns. The owner keeps their mutex from visit to visit, renewed at half its time, for as long as
 * something is due; an idle queue's mutex expires. All shards of a queue are one node's, because fuller batches cost less; which
 * node's follows from the list of live nodes. That binds nobody: a queue whose owner does nothing in time is taken from it, and
 * the commit's fence makes that safe.
 */
export class Ownership {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #leases = new Map<string, Lease>();
  /** Queues that this node took from another: the list of nodes at that time. They are kept until the list changes. */
  readonly #taken = new Map<string, string>();
  /** Queues of this node's share that another node holds, and until when they are left to it. */
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

  /** Reads the list of live nodes, unless that was done shortly before. @returns whether it has changed */
  async learn(): Promise<boolean> {
    const now = this.#clock.now();
    if (!this.#settings.shares || Math.abs(now - this.#readAt) < NODES_FOR) return false;
    this.#readAt = now;
    const live = (await this.#store.registry.nodes()).filter(
      // A beat in the future was written before the clock of Redis went back.
      ({ beat, every }) => beat + BEATS_MISSED * every > now && beat <= now + every,
    );
    const ids = live.map(({ id }) => id).sort();
    const before = this.#list;
    this.#nodes = ids.includes(this.#settings.nodeId) ? ids : undefined;
    if (this.#list === before) return false;
    this.#ranks.clear();
    return true;
  }

  /** Whether this node claims from the queue: it owns it, or is the one to take it. */
  isMine(queue: string): boolean {
    const rank = this.#rank(queue);
    if (this.#holds(queue)) return rank === 0 || this.#taken.get(queue) === this.#list;
    return rank === 0 && !((this.#left.get(queue) ?? 0) > this.#clock.now());
  }

  /** Time in ms for which due shards are left to another node. */
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

  #holds(queue: string): boolean {
    return (this.#leases.get(queue)?.remaining ?? 0) > 0;
  }

  /** Takes or renews the mutex of the queue. @returns whether this node owns it now */
  async hold(queue: string): Promise<boolean> {
    const { mutexTtl } = this.#settings;
    const lease = this.#leases.get(queue);
    if (lease && lease.remaining >= mutexTtl / 2) return true;
    if (lease && lease.remaining > 0 && (await lease.extend(mutexTtl))) return true;
    this.#forget(queue);
    return this.#take(queue);
  }

  /** Takes a queue from an owner that does nothing. @returns whether it is this node's now */
  async takeOver(queue: string): Promise<boolean> {
    if (!(await this.#take(queue))) {
      await this.#store.freeLease(queue, SHARDS);
      if (!(await this.#take(queue))) return false;
    }
    this.#taken.set(queue, this.#list);
    return true;
  }

  async #take(queue: string): Promise<boolean> {
    const lease = await this.#store.lease(queue, SHARDS, this.#settings.mutexTtl);
    if (lease) {
      this.#leases.set(queue, lease);
      this.#left.delete(queue);
    } else {
      this.#left.set(queue, this.#clock.now() + LEFT_FOR);
    }
    return lease !== undefined;
  }

  /** Gives a queue up: it is another node's. */
  async giveUp(queue: string): Promise<void> {
    const lease = this.#leases.get(queue);
    this.#forget(queue);
    await lease?.release();
  }

  #forget(queue: string): void {
    this.#leases.delete(queue);
    this.#taken.delete(queue);
  }

  /** Gives all queues up. */
  async stop(): Promise<void> {
    const leases = [...this.#leases.values()];
    this.#leases.clear();
    await Promise.all(leases.map((lease) => lease.release()));
  }
}
