import { PARTS } from "@carillon/store";
import { type Appointment, isShard, keyOf, type Part } from "../part.js";

/** Least and largest number of parts that are worked on concurrently. */
const FEWEST = 4;
const MOST = 64;
/** Time in ms for which all commits under way together should block Redis. */
const AT_ONCE = 64;
/** Work that takes longer than this, in ms, counts as hanging, on a server that does not answer. */
const STUCK_AFTER = 1_000;

interface Work {
  readonly queue: string;
  readonly forUser: boolean;
  readonly since: number;
  readonly end: Promise<void>;
}

/**
 * The work in progress. Work that hangs gives its place to other queues, but not to its own, whose server does not
 * answer. Work that waits for the user's code blocks nothing else.
 */
export class Slots {
  readonly #working = new Map<string, Work>();
  /** Time in ms for which a commit usually blocks Redis. */
  #usual = 4;

  /** @param work must not reject */
  start({ queue, part }: Appointment, work: () => Promise<void>): void {
    const key = placeOf(queue, part);
    const end = work().finally(() => this.#working.delete(key));
    this.#working.set(key, { queue, forUser: waitsForUser(part), since: performance.now(), end });
  }

  /** @param took time in ms for which a commit blocked Redis */
  learn(took: number): void {
    this.#usual = 0.9 * this.#usual + 0.1 * took;
  }

  /**
   * Parts that are worked on concurrently, as many as Redis bears; those that wait for the user's code have as many places again. How
   * long answers take says nothing: on a machine that is busy with other things, fewer places only make everything later.
   */
  get #places(): number {
    return Math.max(FEWEST, Math.min(MOST, Math.floor(AT_ONCE / this.#usual)));
  }

  /** Whether all places are taken for work that does not wait for the user's code. */
  get full(): boolean {
    return this.#timely(false).length >= this.#places;
  }

  /** Whether the part may be begun if there is a place. */
  free({ queue, part }: Pick<Appointment, "queue" | "part">): boolean {
    if (this.#working.has(placeOf(queue, part))) return false;
    if (waitsForUser(part) && this.#timely(true).length >= this.#places) return false;
    const stuck = performance.now() - STUCK_AFTER;
    for (const one of this.#working.values()) {
      if (one.queue === queue && !one.forUser && one.since <= stuck) return false;
    }
    return true;
  }

  /** Time at which a place may become free because its work hangs, as of `performance.now()`; infinite if places are free. */
  get stuckAt(): number {
    const taken = [this.#timely(false), this.#timely(true)].filter(({ length }) => length >= this.#places);
    return Math.min(...taken.flat().map(({ since }) => since + STUCK_AFTER));
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#working.values()].map(({ end }) => end));
  }

  #timely(forUser: boolean): Work[] {
    const stuck = performance.now() - STUCK_AFTER;
    return [...this.#working.values()].filter((one) => one.forUser === forUser && one.since > stuck);
  }
}

/** The shards of a queue have their visits together, one after the other. */
function placeOf(queue: string, part: Part): string {
  return keyOf(queue, isShard(part) ? "shards" : part);
}

/** Alerts wait for `onAlert`. */
function waitsForUser(part: Part): boolean {
  return part === PARTS.alerts;
}
