import { PARTS } from "@carillon/store";
import { type Appointment, keyOf, type Part } from "../part.js";

/**
 * Most parts that are worked on concurrently; parts that wait for the user's code have the same number of separate
 * places.
 */
const SIDE_BY_SIDE = 4;
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

  /** @param work must not reject */
  start({ queue, part }: Appointment, work: () => Promise<void>): void {
    const key = keyOf(queue, part);
    const end = work().finally(() => this.#working.delete(key));
    this.#working.set(key, { queue, forUser: waitsForUser(part), since: performance.now(), end });
  }

  /** Whether all places are taken for work that does not wait for the user's code. */
  get full(): boolean {
    return this.#timely(false).length >= SIDE_BY_SIDE;
  }

  /** Whether the part may be begun if there is a place. */
  free({ queue, part }: Pick<Appointment, "queue" | "part">): boolean {
    if (this.#working.has(keyOf(queue, part))) return false;
    if (waitsForUser(part) && this.#timely(true).length >= SIDE_BY_SIDE) return false;
    const stuck = performance.now() - STUCK_AFTER;
    for (const one of this.#working.values()) {
      if (one.queue === queue && !one.forUser && one.since <= stuck) return false;
    }
    return true;
  }

  /** Time at which a place may become free because its work hangs, as of `performance.now()`; infinite if places are free. */
  get stuckAt(): number {
    const taken = [this.#timely(false), this.#timely(true)].filter(({ length }) => length >= SIDE_BY_SIDE);
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

/** Alerts wait for `onAlert`. */
function waitsForUser(part: Part): boolean {
  return part === PARTS.alerts;
}
