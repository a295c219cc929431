import { SHARDS, shardOf } from "@carillon/core/internal";
import type { NodeInfo, Store } from "@carillon/store";
import type { ServerClock } from "../loop/server-clock.js";
import type { Settings } from "../options.js";
import { type Appointment, isShard, type Part } from "../part.js";
import type { Bursts } from "./bursts.js";
import type { Preparer } from "./preparer.js";

/** Least time before a burst for which preparing is worthwhile, in ms. */
const TOO_LATE = 20;
/** A node that missed more heartbeats than this gets no share. */
const BEATS_MISSED = 2.5;
/** Time in ms for which the list of nodes is reused: many queues may have their bursts at one instant. */
const NODES_FOR = 1_000;
/** Number of queues that are prepared concurrently. */
const LANES = 4;

/** A burst whose preparation has begun. */
interface Burst {
  readonly at: number;
  /** The shards that this node prepares and begins with; undefined while unknown. */
  mine: ReadonlySet<Part> | undefined;
}

/**
 * Prepares bursts: when all shards of a queue come due at one instant, the nodes share them out shortly before, and
 * each reads and decides its own in advance, so that only the commits are left for the instant itself. This is only a
 * head start: shares follow from the list of live nodes and bind nobody, and tasks that are not prepared, or have
 * changed, are claimed as usual.
 */
export class Lookahead {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #bursts: Bursts;
  readonly #preparer: Preparer;
  readonly #ahead: number;
  /** The last burst of each queue. */
  readonly #begunWith = new Map<string, Burst>();
  /** Each lane prepares one queue after the other, so that a server that hangs delays only some queues. */
  readonly #lanes: Promise<void>[] = Array(LANES).fill(Promise.resolve());
  #begun = 0;
  #nodes: { at: number; read: Promise<NodeInfo[]> } | undefined;
  #stopped = false;

  constructor(store: Store, clock: ServerClock, settings: Settings, bursts: Bursts, preparer: Preparer) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#bursts = bursts;
    this.#preparer = preparer;
    this.#ahead = settings.bursts.ahead;
  }

  /** Begins to prepare the bursts whose time is near. */
  look(now: number): void {
    this.#preparer.forget(now);
    for (const [queue, { at }] of this.#begunWith) if (at < now - this.#ahead) this.#begunWith.delete(queue);
    for (const [queue, times] of this.#bursts) {
      const at = this.#near(queue, times, now);
      if (at !== undefined) this.#begin(queue, { at, mine: undefined });
    }
  }

  /** Time of the queue's burst whose preparation must begin now, if there is one. */
  #near(queue: string, times: readonly number[], now: number): number | undefined {
    const near = times.find((at) => at - this.#ahead <= now && now <= at - TOO_LATE);
    return near === this.#begunWith.get(queue)?.at ? undefined : near;
  }

  #begin(queue: string, burst: Burst): void {
    this.#begunWith.set(queue, burst);
    const lane = this.#begun++ % LANES;
    this.#lanes[lane] = (this.#lanes[lane] as Promise<void>).then(() => this.#prepare(queue, burst));
  }

  /** Time of the next call of `look`, in server time; infinite: not before something changes. */
  nextAt(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [queue, times] of this.#bursts) {
      // A burst that became known only when its time was near.
      if (this.#near(queue, times, now) !== undefined) return now;
      for (const at of times) if (at - this.#ahead > now) next = Math.min(next, at - this.#ahead);
    }
    return next;
  }

  /** Whether another node has prepared this part, and so gets a head start. */
  othersBegin({ queue, part, at }: Appointment): boolean {
    const burst = this.#begunWith.get(queue);
    return burst?.mine !== undefined && burst.at === at && isShard(part) && !burst.mine.has(part);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#lanes);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.idle();
  }

  async #prepare(queue: string, burst: Burst): Promise<void> {
    const goOn = () => !this.#stopped && !this.#clock.holding && this.#clock.now() < burst.at;
    try {
      if (!goOn()) return;
      burst.mine = await this.#shareOf(queue);
      for (const part of burst.mine ?? []) {
        if (goOn()) await this.#preparer.prepare(queue, Number(part), burst.at, goOn);
      }
    } catch (error) {
      // The claims will meet the same fault, and report it.
      this.#settings.logger.debug({ queue, error: String(error) }, "could not prepare a burst");
    }
  }

  /** This node's share of the shards. Nodes that see the same list agree on it. Undefined if this node is not on the list. */
  async #shareOf(queue: string): Promise<ReadonlySet<Part> | undefined> {
    const now = this.#clock.now();
    if (!this.#nodes || Math.abs(now - this.#nodes.at) > NODES_FOR) {
      this.#nodes = { at: now, read: this.#store.registry.nodes() };
    }
    const nodes = (await this.#nodes.read).filter(
      // A beat in the future was written before the clock of Redis went back.
      ({ beat, every }) => beat + BEATS_MISSED * every > now && beat <= now + every,
    );
    const own = nodes.findIndex(({ id }) => id === this.#settings.nodeId);
    if (own < 0) return undefined;
    const mine = (shard: number) => (shard + shardOf(queue)) % nodes.length === own;
    return new Set([...Array(SHARDS).keys()].filter(mine).map(String));
  }
}
