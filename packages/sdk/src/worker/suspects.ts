/** A job that ends its worker mostly does so soon after its start, in ms. */
const PROBATION = 5_000;
/** Before a suspect comes back for the first time, in ms. */
const FIRST = 1_000;
/** Between two that come back, in ms: one is on its way for a few, and dies with its worker then. */
const SPACING = 250;
/** No wait is longer, in ms. */
const LONGEST = 300_000;
/** So many have their turn one after the other; the others wait until there is room among them. */
const REMEMBERED = 1_000;

/** Of those it may be forgotten that they were seen. */
const HAD_ITS_TURN = Number.NEGATIVE_INFINITY;

/**
 * Jobs whose worker died start one at a time, the others waiting outside: the one that ends each worker it meets should not
 * take those with it that it ran beside, again and again, until they count as crashed too.
 */
export class Suspects {
  /** When each is to come back: UTC ms. */
  readonly #seen = new Map<string, number>();
  #current: { readonly job: string; readonly until: number } | undefined;
  #lastSlot = 0;

  /**
   * Undefined: it may start now, and `ended` is to be told. Otherwise when it is to come back.
   * @param now UTC ms, of the clock that delayed jobs go by
   */
  admit(job: string, now: number): number | undefined {
    const left = (this.#current?.until ?? now) - now;
    // More is left than it was long: the clock was put back.
    const busy = left > 0 && left <= PROBATION;
    if (this.#seen.has(job) && !busy) {
      this.#seen.set(job, HAD_ITS_TURN);
      this.#current = { job, until: now + PROBATION };
      return undefined;
    }
    const free = now + (busy ? left : FIRST);
    // The same.
    this.#lastSlot = Math.max(free, Math.min(this.#lastSlot, now + LONGEST) + SPACING);
    this.#remember(job, now);
    return this.#lastSlot;
  }

  #remember(job: string, now: number): void {
    if (!this.#seen.has(job) && this.#seen.size >= REMEMBERED && !this.#forgetOne(now)) return;
    this.#seen.set(job, this.#lastSlot);
  }

  #forgetOne(now: number): boolean {
    for (const [job, at] of this.#seen) {
      // Of those that other workers did, nobody tells us: they do not come back. (And the clock may have been put back.)
      if (Math.abs(at - now) > 2 * LONGEST) return this.#seen.delete(job);
    }
    return false;
  }

  ended(job: string): void {
    if (this.#current?.job === job) this.#current = undefined;
  }
}
