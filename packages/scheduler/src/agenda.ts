import { SHARDS } from "@carillon/core";

/**
 * Something of a queue that must be looked at from time to time: a shard, by its number; `r` what is to be reconciled, `a` alerts, `e`
 * expected successes, `b` backfills.
 */
export type Part = string;

/** The estimate of the server's clock may move back by so much, in ms, although that clock did not. */
const CLOCK_WOBBLE = 1_000;

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
  readonly #held = new Map<string, Map<Part, { until: number; ms: number }>>();
  /** The last announcement of each part, numbered: one that came after a read was sent is not in its answer. */
  readonly #news = new Map<string, Map<Part, { at: number; number: number }>>();
  readonly #bursts = new Map<string, readonly number[]>();
  readonly #shards: number;
  #announcements = 0;

  /** @param shards that come due at one instant are a burst */
  constructor(shards: number = SHARDS) {
    this.#shards = shards;
  }

  /**
   * Take it before a read is sent, and hand it over with the answer: announcements travel on another connection, so
   * one that overtook the answer tells of something that is not in it.
   */
  mark(): number {
    return this.#announcements;
  }

  /** All parts of a queue, as read since `mark`. */
  set(queue: string, parts: ReadonlyMap<Part, number>, mark = this.#announcements): void {
    this.#queues.set(queue, new Map(parts));
    for (const [part, { at, number }] of this.#news.get(queue) ?? []) {
      if (number > mark) this.#bring(queue, part, at);
    }
    this.#findBursts(queue);
  }

  /** Announced: one part came nearer. */
  nearer(queue: string, part: Part, at: number): void {
    this.#announcements += 1;
    inner(this.#news, queue).set(part, { at, number: this.#announcements });
    this.#bring(queue, part, at);
    this.#findBursts(queue);
  }

  #bring(queue: string, part: Part, at: number): void {
    const parts = inner(this.#queues, queue);
    const known = parts.get(part);
    if (known === undefined || at < known) parts.set(part, at);
  }

  /** Forgets the queues that are no longer in the registry, as read since `mark`. */
  keepOnly(queues: readonly string[], mark = this.#announcements): void {
    const keep = new Set(queues);
    for (const [queue, parts] of this.#news) {
      if ([...parts.values()].some(({ number }) => number > mark)) keep.add(queue);
    }
    for (const map of [this.#queues, this.#held, this.#news, this.#bursts]) {
      for (const queue of map.keys()) if (!keep.has(queue)) map.delete(queue);
    }
  }

  /** Leaves a part alone for `ms`. */
  hold(queue: string, part: Part, now: number, ms: number): void {
    inner(this.#held, queue).set(part, { until: now + ms, ms });
  }

  /** What keeps a part from being looked at, if anything does: another object each time that it is held. */
  holdOf(queue: string, part: Part): object | undefined {
    return this.#held.get(queue)?.get(part);
  }

  release(queue: string, part: Part): void {
    this.#held.get(queue)?.delete(part);
  }

  /**
   * Ends the holds of a queue's parts that are no longer due: whoever was on them has done the work. Returns the parts that
   * are still due and held.
   */
  releaseDone(queue: string, now: number): Part[] {
    const parts = this.#queues.get(queue);
    const held = this.#held.get(queue);
    const left: Part[] = [];
    for (const part of held?.keys() ?? []) {
      if ((parts?.get(part) ?? Number.POSITIVE_INFINITY) > now) held?.delete(part);
      else left.push(part);
    }
    return left;
  }

  /** What is due at `now`, earliest first. */
  due(now: number): Appointment[] {
    return [...this.#appointments(now)].filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
  }

  /** The earliest time at which anything is due, of what `counts`. */
  earliest(now: number, counts: (one: Appointment) => boolean = () => true): number | undefined {
    let earliest: number | undefined;
    for (const one of this.#appointments(now)) {
      if ((earliest === undefined || one.at < earliest) && counts(one)) earliest = one.at;
    }
    return earliest;
  }

  /** Where enough shards of a queue come due at one instant, as far as is known: by queue the times of that. */
  get bursts(): ReadonlyMap<string, readonly number[]> {
    return this.#bursts;
  }

  /** Done when times change: each wake-up asks for the result. */
  #findBursts(queue: string): void {
    const counts = new Map<number, number>();
    for (const [part, at] of this.#queues.get(queue) ?? []) {
      if (isShard(part)) counts.set(at, (counts.get(at) ?? 0) + 1);
    }
    const bursts = [...counts].flatMap(([at, count]) => (count >= this.#shards ? [at] : []));
    if (bursts.length > 0) this.#bursts.set(queue, bursts);
    else this.#bursts.delete(queue);
  }

  /** When a part is to be looked at, in server time; infinite: no time is known. */
  at({ queue, part }: Pick<Appointment, "queue" | "part">, now: number): number {
    const at = this.#queues.get(queue)?.get(part) ?? Number.POSITIVE_INFINITY;
    return Math.max(at, this.#heldUntil(queue, part, now));
  }

  #heldUntil(queue: string, part: Part, now: number): number {
    const hold = this.#held.get(queue)?.get(part);
    // A hold whose end is further away than it was long: the server's clock went back, and the hold is void.
    const holds = hold !== undefined && hold.until - now <= hold.ms + CLOCK_WOBBLE;
    return holds ? hold.until : Number.NEGATIVE_INFINITY;
  }

  *#appointments(now: number): Generator<Appointment> {
    for (const [queue, parts] of this.#queues) {
      for (const [part, at] of parts) {
        yield { queue, part, at: Math.max(at, this.#heldUntil(queue, part, now)) };
      }
    }
  }
}

export function isShard(part: Part): boolean {
  return /^\d$/.test(part);
}

/** For a map of parts of all queues. */
export function keyOf(queue: string, part: Part): string {
  return `${queue} ${part}`;
}

function inner<T>(map: Map<string, Map<Part, T>>, queue: string): Map<Part, T> {
  let parts = map.get(queue);
  if (!parts) {
    parts = new Map();
    map.set(queue, parts);
  }
  return parts;
}
