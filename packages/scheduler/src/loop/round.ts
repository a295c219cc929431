import { SHARDS, shardOf } from "@carillon/core/internal";
import { type Appointment, isShard, keyOf } from "../part.js";
import type { Agenda } from "./agenda.js";
import type { Slots } from "./slots.js";

/** Time in ms for which a queue is worked shard by shard after more was due in it than fits in one batch. */
const LARGE_FOR = 10_000;
/** Most such queues that are remembered. */
const LARGE_AT_MOST = 1_000;

/** The order of work: each part that is due has a turn before any part has a second one. */
export class Round {
  readonly #agenda: Agenda;
  readonly #slots: Slots;
  readonly #first: number;
  /** Parts of the round that are still to come. */
  #left: (readonly Appointment[])[] = [];
  /** Queues in which much is due, and until when they count as such, as of `performance.now()`. */
  readonly #large = new Map<string, number>();

  constructor(agenda: Agenda, slots: Slots, nodeId: string) {
    this.#agenda = agenda;
    this.#slots = slots;
    // Nodes begin at different shards, so that in a burst they do not compete for the same one.
    this.#first = shardOf(nodeId);
  }

  /**
   * The next turn of this round, or the first of a new one: a part, or the shards of a small backlog. Undefined if nothing is due.
   *
   * @param leave whether a part is left to another node
   */
  next(now: number, leave: (one: Appointment) => boolean): readonly Appointment[] | undefined {
    for (;;) {
      const turn = this.#left.shift() ?? this.#begin(now, leave);
      if (!turn) return undefined;
      // Since the round began, another node may have done the work, or the queue may hang.
      const parts = turn.filter((one) => this.#slots.free(one) && this.#agenda.at(one, now) <= now);
      if (parts.length > 0) return parts;
    }
  }

  /** Begins a round with all parts that are due and free. @returns the first turn */
  #begin(now: number, leave: (one: Appointment) => boolean): readonly Appointment[] | undefined {
    const rank = ({ part }: Appointment) =>
      isShard(part) ? (Number(part) + SHARDS - this.#first) % SHARDS : SHARDS;
    const due = this.#agenda.due(now).filter((one) => this.#slots.free(one) && !leave(one));
    this.#left = this.#turns(due.sort((a, b) => rank(a) - rank(b)));
    return this.#left.shift();
  }

  /**
   * Shards of a queue that came due at different times have their turn together, in the place of the first one. Shards
   * that are due at one instant need no order, and the nodes share them out.
   */
  #turns(due: readonly Appointment[]): (readonly Appointment[])[] {
    const times = new Map<string, number>();
    const backlogs = new Map<string, Appointment[]>();
    for (const { queue, part, at } of due) {
      if (!isShard(part) || this.#isLarge(queue)) continue;
      if ((times.get(queue) ?? at) !== at) backlogs.set(queue, []);
      times.set(queue, at);
    }
    const turns = new Map<string, Appointment[]>();
    for (const one of due) {
      const backlog = isShard(one.part) ? backlogs.get(one.queue) : undefined;
      const key = backlog ? one.queue : keyOf(one.queue, one.part);
      backlog?.push(one);
      turns.set(key, backlog ?? [one]);
    }
    return [...turns.values()];
  }

  /** Gives the queue's shards separate turns for a while. */
  large(queue: string): void {
    if (this.#large.size >= LARGE_AT_MOST) this.#large.clear();
    this.#large.set(queue, performance.now() + LARGE_FOR);
  }

  #isLarge(queue: string): boolean {
    const until = this.#large.get(queue);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#large.delete(queue);
    return false;
  }
}
