import { SHARDS, shardOf } from "@carillon/core";
import type { NodeInfo, Store } from "@carillon/store";
import { type Agenda, type Appointment, isShard, type Part } from "./agenda.js";
import type { Claimer } from "./claimer.js";
import type { Settings } from "./options.js";
import type { ServerClock } from "./server-clock.js";

/** How long before its time a burst is prepared, in ms. */
const AHEAD = 500;
/** With less time than this it is not worth it, in ms. */
const TOO_LATE = 20;
/** A node that missed so many heartbeats is not reckoned with. */
const BEATS_MISSED = 2.5;
/** The list of nodes is read again after this long, in ms: many queues may have their bursts at one instant. */
const NODES_FOR = 1_000;
/** How many queues are prepared side by side. */
const LANES = 4;

/** A burst that was seen coming. */
interface Burst {
  readonly at: number;
  /** The shards that this node prepares and begins with; undefined: not known yet. */
  mine: ReadonlySet<Part> | undefined;
}

/**
 * Gets ready for a burst: where all shards of a queue come due at one instant, the nodes share them out shortly before, and each
 * reads and decides its own ahead, so that the instant itself only needs the commits. A head start and no more: shares are by the list of
 * live nodes, nobody is bound by them, and what is not prepared, or no longer holds, is claimed as ever.
 */
export class Lookahead {
  readonly #store: Store;
  readonly #clock: ServerClock;
  readonly #settings: Settings;
  readonly #agenda: Agenda;
  readonly #claimer: Claimer;
  readonly #ahead: number;
  /** By queue, the last one. */
  readonly #bursts = new Map<string, Burst>();
  /** In each one queue after the other: a server that hangs keeps only some waiting. */
  readonly #lanes: Promise<void>[] = Array(LANES).fill(Promise.resolve());
  #begun = 0;
  #nodes: { at: number; read: Promise<NodeInfo[]> } | undefined;
  #stopped = false;

  constructor(store: Store, clock: ServerClock, settings: Settings, agenda: Agenda, claimer: Claimer) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#agenda = agenda;
    this.#claimer = claimer;
    this.#ahead = store.burst?.ahead ?? AHEAD;
  }

  /** Begins with the bursts whose time is near. */
  look(now: number): void {
    this.#claimer.forget(now);
    for (const [queue, { at }] of this.#bursts) if (at < now - this.#ahead) this.#bursts.delete(queue);
    for (const [queue, times] of this.#agenda.bursts) {
      const at = this.#near(queue, times, now);
      if (at !== undefined) this.#begin(queue, { at, mine: undefined });
    }
  }

  /** The time of a queue's burst that is to be begun with now, if there is one. */
  #near(queue: string, times: readonly number[], now: number): number | undefined {
    const near = times.find((at) => at - this.#ahead <= now && now <= at - TOO_LATE);
    return near === this.#bursts.get(queue)?.at ? undefined : near;
  }

  #begin(queue: string, burst: Burst): void {
    this.#bursts.set(queue, burst);
    const lane = this.#begun++ % LANES;
    this.#lanes[lane] = (this.#lanes[lane] as Promise<void>).then(() => this.#prepare(queue, burst));
  }

  /** When to look again, in server time; infinite: not before something changes. */
  nextAt(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [queue, times] of this.#agenda.bursts) {
      // One that became known when its time was near.
      if (this.#near(queue, times, now) !== undefined) return now;
      for (const at of times) if (at - this.#ahead > now) next = Math.min(next, at - this.#ahead);
    }
    return next;
  }

  /** Whether another node is ready for it, and is to have a moment's start. */
  othersBegin({ queue, part, at }: Appointment): boolean {
    const burst = this.#bursts.get(queue);
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
        if (goOn()) await this.#claimer.prepare(queue, Number(part), burst.at, goOn);
      }
    } catch (error) {
      // Whatever it is, the claims will meet it again, and tell.
      this.#settings.logger.debug({ queue, error: String(error) }, "not prepared");
    }
  }

  /** This node's share of the shards. Nodes that see the same list agree on it. Undefined: this node is not on the list. */
  async #shareOf(queue: string): Promise<ReadonlySet<Part> | undefined> {
    const now = this.#clock.now();
    if (!this.#nodes || Math.abs(now - this.#nodes.at) > NODES_FOR) {
      this.#nodes = { at: now, read: this.#store.registry.nodes() };
    }
    const nodes = (await this.#nodes.read).filter(
      // One from the future beat before the clock of Redis went back.
      ({ beat, every }) => beat + BEATS_MISSED * every > now && beat <= now + every,
    );
    const own = nodes.findIndex(({ id }) => id === this.#settings.nodeId);
    if (own < 0) return undefined;
    const mine = (shard: number) => (shard + shardOf(queue)) % nodes.length === own;
    return new Set([...Array(SHARDS).keys()].filter(mine).map(String));
  }
}
