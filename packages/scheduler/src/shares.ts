import { SHARDS, shardOf } from "@carillon/core";
import type { Store } from "@carillon/store";
import { keyOf, type Part } from "./agenda.js";
import type { Settings } from "./options.js";
import type { ServerClock } from "./server-clock.js";

/** A node that missed so many heartbeats is not reckoned with. */
const BEATS_MISSED = 2.5;
/** Many queues may have their bursts at one instant: the list of nodes is read once for them, in ms. */
const FRESH_FOR = 1_000;
/** What was read last still serves where nobody waits for a newer one, in ms. */
const SERVES_FOR = 10_000;
/** A part that nobody took when it was left is not left again so soon, in ms. */
const KEPT_FOR = 5_000;

/**
 * Which shards of a queue are whose where nodes have to share them out: for a burst, and while there is more to do than one node
 * gets done. By the list of live nodes, so alike on all that know of the same ones. Nobody is bound by it: it saves nodes from
 * getting in each other's way, and all of them might as well be wrong about it.
 */
export class Shares {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  /** Ids of the live ones, and when they were asked for, in server time. */
  #reading: { at: number; nodes: Promise<string[]> } | undefined;
  #last: { at: number; nodes: string[] } | undefined;
  /** Parts that were left to others, and when. */
  readonly #left = new Map<string, number>();

  constructor(store: Store, clock: ServerClock, settings: Settings) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** This node's. Undefined: it is not on the list. @throws what Redis answers */
  async read(queue: string): Promise<ReadonlySet<Part> | undefined> {
    return this.#of(queue, await this.#nodes());
  }

  /** As read lately, at once. Undefined: not known, or no longer. */
  known(queue: string): ReadonlySet<Part> | undefined {
    // For the next time. Whoever cannot read the list does without.
    this.#nodes().catch(() => {});
    if (!this.#last || this.#age(this.#last) > SERVES_FOR) return undefined;
    return this.#of(queue, this.#last.nodes);
  }

  /** Whether a shard on which this node was busy for a whole turn is another's share, and was not left in vain a moment ago. */
  leaves(queue: string, part: Part): boolean {
    const mine = this.known(queue);
    if (!mine || mine.has(part)) return false;
    for (const [key, at] of this.#left) if (this.#age({ at }) > KEPT_FOR) this.#left.delete(key);
    const key = keyOf(queue, part);
    if (this.#left.has(key)) return false;
    this.#left.set(key, this.#clock.now());
    return true;
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await this.#reading?.nodes.catch(() => {});
  }

  #nodes(): Promise<string[]> {
    if (!this.#reading || this.#age(this.#reading) > FRESH_FOR) {
      const at = this.#clock.now();
      this.#reading = { at, nodes: this.#readNodes(at) };
    }
    return this.#reading.nodes;
  }

  async #readNodes(at: number): Promise<string[]> {
    const nodes = (await this.#store.registry.nodes())
      // One from the future beat before the clock of Redis went back.
      .filter(({ beat, every }) => beat + BEATS_MISSED * every > at && beat <= at + every)
      .map(({ id }) => id);
    this.#last = { at, nodes };
    return nodes;
  }

  #of(queue: string, nodes: readonly string[]): ReadonlySet<Part> | undefined {
    const own = nodes.indexOf(this.#settings.nodeId);
    if (own < 0) return undefined;
    const mine = (shard: number) => (shard + shardOf(queue)) % nodes.length === own;
    return new Set([...Array(SHARDS).keys()].filter(mine).map(String));
  }

  /** In ms; the server's clock may have gone back. */
  #age({ at }: { at: number }): number {
    return Math.abs(this.#clock.now() - at);
  }
}
