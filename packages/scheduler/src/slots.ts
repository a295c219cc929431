import { type Appointment, keyOf } from "./agenda.js";

/** Parts worked on side by side. */
const SIDE_BY_SIDE = 4;
/** Work that takes longer than this hangs, on a server that does not answer; in ms. */
const STUCK_AFTER = 1_000;

/** What is under way. Work that hangs gives its place to others, but not to its own queue, whose server it waits for. */
export class Slots {
  readonly #working = new Map<string, { queue: string; since: number; end: Promise<void> }>();

  /** @param work must not reject */
  start({ queue, part }: Appointment, work: () => Promise<void>): void {
    const key = keyOf(queue, part);
    const end = work().finally(() => this.#working.delete(key));
    this.#working.set(key, { queue, since: performance.now(), end });
  }

  get full(): boolean {
    return this.#timely().length >= SIDE_BY_SIDE;
  }

  /** Whether the part may be begun, where there is a place. */
  free({ queue, part }: Appointment): boolean {
    if (this.#working.has(keyOf(queue, part))) return false;
    const stuck = performance.now() - STUCK_AFTER;
    for (const one of this.#working.values()) if (one.queue === queue && one.since <= stuck) return false;
    return true;
  }

  /** When a place may become free because what has it hangs: a time of `performance.now()`. */
  get stuckAt(): number {
    return Math.min(...this.#timely().map(({ since }) => since + STUCK_AFTER));
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#working.values()].map(({ end }) => end));
  }

  #timely() {
    const stuck = performance.now() - STUCK_AFTER;
    return [...this.#working.values()].filter(({ since }) => since > stuck);
  }
}
