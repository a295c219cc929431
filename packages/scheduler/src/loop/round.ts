import { type Appointment, isShard, keyOf } from "../part.js";
import { type Agenda, reach } from "./agenda.js";
import type { Slots } from "./slots.js";

/** Time in ms for which a queue is worked shard by shard after a visit failed, to find the shard at fault. */
const APART_FOR = 10_000;
/** Most such queues that are remembered. */
const APART_AT_MOST = 1_000;

/** The order of work: each part that is due is visited before any part is visited again. */
export class Round {
  readonly #agenda: Agenda;
  readonly #slots: Slots;
  /** Parts of the round that are still to come. */
  #left: (readonly Appointment[])[] = [];
  /** Queues whose shards have separate visits, and until when, as of `performance.now()`. */
  readonly #apart = new Map<string, number>();

  constructor(agenda: Agenda, slots: Slots) {
    this.#agenda = agenda;
    this.#slots = slots;
  }

  /** The next visit of this round, or the first of a new one: a part, or all shards of a queue. Undefined if nothing is due. */
  next(now: number): readonly Appointment[] | undefined {
    for (;;) {
      const visit = this.#left.shift() ?? this.#begin(now);
      if (!visit) return undefined;
      // Since the round began, another node may have done the work, or the queue may hang.
      const parts = visit.filter(
        (one) => this.#slots.free(one) && this.#agenda.at(one, now) <= now + reach(one.part),
      );
      if (parts.some((one) => this.#agenda.at(one, now) <= now)) return parts;
    }
  }

  /** Begins a round with all parts that are due and free. @returns the first visit */
  #begin(now: number): readonly Appointment[] | undefined {
    const visits = new Map<string, Appointment[]>();
    for (const one of this.#agenda.due(now)) {
      if (!this.#slots.free(one)) continue;
      const { queue, part } = one;
      const key = isShard(part) && !this.#isApart(queue) ? queue : keyOf(queue, part);
      const visit = visits.get(key);
      if (visit) visit.push(one);
      else visits.set(key, [one]);
    }
    this.#left = [...visits.values()];
    return this.#left.shift();
  }

  /** Gives the queue's shards separate visits for a while. */
  apart(queue: string): void {
    if (this.#apart.size >= APART_AT_MOST) this.#apart.clear();
    this.#apart.set(queue, performance.now() + APART_FOR);
  }

  #isApart(queue: string): boolean {
    const until = this.#apart.get(queue);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#apart.delete(queue);
    return false;
  }
}
