import { type Appointment, isShard, type Part, TOGETHER } from "../part.js";

/** Largest step back of the estimated server clock, in ms, that is put down to the estimate rather than the clock. */
const CLOCK_WOBBLE = 1_000;

/**
 * Time of the next check of each part of each queue, as last read. May be too early (a needless check), but never too
 * late for long: earlier times are announced, and everything is read again from time to time.
 */
export class Agenda {
  readonly #queues = new Map<string, Map<Part, number>>();
  /** Parts that another node is working on, or that made no progress, and until when they rest. */
  readonly #held = new Map<string, Map<Part, { until: number; ms: number }>>();
  /** The last announcement of each part, numbered: a read does not include announcements that arrived after it was sent. */
  readonly #news = new Map<string, Map<Part, { at: number; number: number }>>();
  readonly #visitAt: (queue: string, part: Part, at: number) => number;
  /** Time of the first visit at each queue, where it is known: with many queues, a wake-up concerns few of them. */
  readonly #firsts = new Map<string, number>();
  #announcements = 0;
  /** The last time that was asked about. */
  #asked = Number.NEGATIVE_INFINITY;

  /** @param visitAt time of the visit at a part that is due at a time; default: that time */
  constructor(visitAt: (queue: string, part: Part, at: number) => number = (_, __, at) => at) {
    this.#visitAt = visitAt;
  }

  /**
   * Take it before a read is sent, and pass it on with the answer. Announcements use another connection, so one may arrive
   * before an answer that does not include it.
   */
  mark(): number {
    return this.#announcements;
  }

  /** The visits at a queue, or at all queues, may have other times from here on. */
  changed(queue?: string): void {
    if (queue === undefined) this.#firsts.clear();
    else this.#firsts.delete(queue);
  }

  /** Replaces the times of all parts of a queue with those read since `mark`. */
  set(queue: string, parts: ReadonlyMap<Part, number>, mark = this.#announcements): void {
    this.#queues.set(queue, new Map(parts));
    this.changed(queue);
    for (const [part, { at, number }] of this.#news.get(queue) ?? []) {
      if (number > mark) this.#bring(queue, part, at);
    }
  }

  /** Sets the times of some parts, as an answer to what was sent at `mark` says. */
  moved(queue: string, times: ReadonlyMap<Part, number | undefined>, mark: number): void {
    const parts = inner(this.#queues, queue);
    this.changed(queue);
    for (const [part, at] of times) {
      if (at === undefined) parts.delete(part);
      else parts.set(part, at);
      const news = this.#news.get(queue)?.get(part);
      if (news && news.number > mark) this.#bring(queue, part, news.at);
    }
  }

  partsOf(queue: string): Part[] {
    return [...(this.#queues.get(queue)?.keys() ?? [])];
  }

  /** Time at which a part is due; infinite: none is known. */
  head(queue: string, part: Part): number {
    return this.#queues.get(queue)?.get(part) ?? Number.POSITIVE_INFINITY;
  }

  /** Handles the announcement of an earlier time for one part. */
  nearer(queue: string, part: Part, at: number): void {
    this.#announcements += 1;
    inner(this.#news, queue).set(part, { at, number: this.#announcements });
    this.#bring(queue, part, at);
  }

  #bring(queue: string, part: Part, at: number): void {
    const parts = inner(this.#queues, queue);
    const known = parts.get(part);
    if (known !== undefined && at >= known) return;
    parts.set(part, at);
    this.changed(queue);
  }

  /** Forgets the queues that are no longer in the registry, as read since `mark`. */
  keepOnly(queues: readonly string[], mark = this.#announcements): void {
    const keep = new Set(queues);
    for (const [queue, parts] of this.#news) {
      if ([...parts.values()].some(({ number }) => number > mark)) keep.add(queue);
    }
    for (const map of [this.#queues, this.#held, this.#news, this.#firsts]) {
      for (const queue of map.keys()) {
        if (!keep.has(queue)) map.delete(queue);
      }
    }
  }

  /** Lets a part rest for `ms`. */
  hold(queue: string, part: Part, now: number, ms: number): void {
    inner(this.#held, queue).set(part, { until: now + ms, ms });
    this.changed(queue);
  }

  release(queue: string, part: Part): void {
    this.#held.get(queue)?.delete(part);
    this.changed(queue);
  }

  /** Parts that are due at `now`, earliest first, and shards that are due soon after one of their queue. */
  due(now: number): Appointment[] {
    const queues = [...this.#queues.keys()].filter((queue) => this.#first(queue, now) <= now);
    const parts = queues.flatMap((queue) => {
      const due = this.#appointments(queue, now).filter(({ at, part }) => at <= now + reach(part));
      return due.some(({ at, part }) => at <= now && isShard(part)) ? due : due.filter(({ at }) => at <= now);
    });
    return parts.sort((a, b) => a.at - b.at);
  }

  /** Earliest time among the parts for which `counts` is true. */
  earliest(now: number, counts: (one: Appointment) => boolean = () => true): number | undefined {
    let earliest = Number.POSITIVE_INFINITY;
    for (const queue of this.#queues.keys()) {
      if (this.#first(queue, now) >= earliest) continue;
      for (const one of this.#appointments(queue, now))
        if (one.at < earliest && counts(one)) earliest = one.at;
    }
    return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
  }

  /** Time at which a part must be checked, in server time; infinite if no time is known. */
  at({ queue, part }: Pick<Appointment, "queue" | "part">, now: number): number {
    const head = this.head(queue, part);
    const at = head === Number.POSITIVE_INFINITY ? head : this.#visitAt(queue, part, head);
    return Math.max(at, this.#heldUntil(queue, part, now));
  }

  #heldUntil(queue: string, part: Part, now: number): number {
    const hold = this.#held.get(queue)?.get(part);
    // If the end of a hold is further away than its length, the server's clock went back, and the hold is void.
    const holds = hold !== undefined && hold.until - now <= hold.ms + CLOCK_WOBBLE;
    return holds ? hold.until : Number.NEGATIVE_INFINITY;
  }

  #first(queue: string, now: number): number {
    // Holds end when the server's clock goes back.
    if (now < this.#asked - CLOCK_WOBBLE) this.changed();
    this.#asked = now;
    let first = this.#firsts.get(queue);
    if (first === undefined) {
      first = Math.min(...this.#appointments(queue, now).map(({ at }) => at));
      this.#firsts.set(queue, first);
    }
    return first;
  }

  #appointments(queue: string, now: number): Appointment[] {
    return this.partsOf(queue).map((part) => ({ queue, part, at: this.at({ queue, part }, now) }));
  }
}

/** Time in ms before its own at which a part may be visited together with others. */
export const reach = (part: Part): number => (isShard(part) ? TOGETHER : 0);

function inner<T>(map: Map<string, Map<Part, T>>, queue: string): Map<Part, T> {
  let parts = map.get(queue);
  if (!parts) {
    parts = new Map();
    map.set(queue, parts);
  }
  return parts;
}
