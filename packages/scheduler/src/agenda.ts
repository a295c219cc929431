/** A slice of a queue that must be looked at from time to time: a shard's number, or `r`, the reconciler's. */
export type Part = string;

export interface Appointment {
  readonly queue: string;
  readonly part: Part;
  readonly at: number;
}

/**
 * When each part of each queue must be looked at next, as last read. May be too early (a needless look), never too
 * late for long: what comes nearer is announced, and all of it is read again from time to time.
 */
export class Agenda {
  readonly #queues = new Map<string, Map<Part, number>>();
  /** Parts that someone else is working on, or that made no progress: not before this time. */
  readonly #held = new Map<string, number>();

  /** All parts of a queue, as read. */
  set(queue: string, parts: ReadonlyMap<Part, number>): void {
    this.#queues.set(queue, new Map(parts));
  }

  /** One part came nearer. */
  nearer(queue: string, part: Part, at: number): void {
    let parts = this.#queues.get(queue);
    if (!parts) {
      parts = new Map();
      this.#queues.set(queue, parts);
    }
    const known = parts.get(part);
    if (known === undefined || at < known) parts.set(part, at);
  }

  /** Queues that are no longer in the registry. */
  keepOnly(queues: readonly string[]): void {
    const keep = new Set(queues);
    for (const queue of this.#queues.keys()) if (!keep.has(queue)) this.#queues.delete(queue);
  }

  hold(queue: string, part: Part, until: number): void {
    this.#held.set(`${queue} ${part}`, until);
  }

  release(queue: string, part: Part): void {
    this.#held.delete(`${queue} ${part}`);
  }

  /** Ends the holds of a queue's parts that are no longer due: whoever was on them has done the work. */
  releaseDone(queue: string, now: number): void {
    const parts = this.#queues.get(queue);
    for (const key of this.#held.keys()) {
      const [heldQueue, part] = key.split(" ") as [string, string];
      if (heldQueue === queue && (parts?.get(part) ?? Number.POSITIVE_INFINITY) > now) this.#held.delete(key);
    }
  }

  /** What is due at `now`, earliest first. */
  due(now: number): Appointment[] {
    return [...this.#appointments()].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
  }

  /** The earliest time at which anything is due. */
  earliest(): number | undefined {
    let earliest: number | undefined;
    for (const { at } of this.#appointments()) if (earliest === undefined || at < earliest) earliest = at;
    return earliest;
  }

  *#appointments(): Generator<Appointment> {
    for (const [queue, parts] of this.#queues) {
      for (const [part, at] of parts) {
        const until = this.#held.get(`${queue} ${part}`);
        yield { queue, part, at: until === undefined ? at : Math.max(at, until) };
      }
    }
  }
}
