import { PARTS } from "@carillon/store";
import { type Appointment, isShard, keyOf, type Part } from "../part.js";

/** Least and largest number of parts that are worked on concurrently. */
const FEWEST = 4;
const MOST = 64;
/** Round trips in ms below which Redis bears more at a time, and above which it has too much. */
const QUICK = 20;
const SLOW = 100;
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
  /** Parts that are worked on concurrently, as many as Redis bears; those that wait for the user's code have as many places again. */
  #places = 16;
  #lessAt = 0;

  /** @param work must not reject */
  start({ queue, part }: Appointment, work: () => Promise<void>): void {
    const key = placeOf(queue, part);
    const end = work().finally(() => this.#working.delete(key));
    this.#working.set(key, { queue, forUser: waitsForUser(part), since: performance.now(), end });
  }

  /** Adapts the number of places to the round trip of a commit, in ms. */
  learn(roundTrip: number): void {
    const now = performance.now();
    if (roundTrip < QUICK) this.#places = Math.min(MOST, this.#places + 1);
    // Answers to what was sent before do not show the effect yet.
    else if (roundTrip > SLOW && now - this.#lessAt > roundTrip) {
      this.#places = Math.max(FEWEST, Math.floor(this.#places / 2));
      this.#lessAt = now;
    }
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

/** The shards of a queue have their turns together, one after the other. */
function placeOf(queue: string, part: Part): string {
  return keyOf(queue, isShard(part) ? "shards" : part);
}

/** Alerts wait for `onAlert`. */
function waitsForUser(part: Part): boolean {
  return part === PARTS.alerts;
}
