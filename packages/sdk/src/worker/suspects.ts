/** Longest wait for a suspect job that is running, in ms: a job that crashes its worker usually does so soon after its start. */
const PROBATION = 5_000;
/** Delay before a suspect returns for the first time, in ms. */
const FIRST = 1_000;
/**
 * Time between the returns of two suspects, in ms: one that is being fetched would die with the worker that another one
 * kills.
 */
const SPACING = 250;
/** No wait is longer, in ms. */
const LONGEST = 300_000;
/** Limit of remembered jobs. Others are sent back again and again until there is room. */
const REMEMBERED = 1_000;

/** In place of a time, for jobs that have started: these can always be forgotten. */
const HAD_ITS_TURN = Number.NEGATIVE_INFINITY;

/**
 * Jobs whose worker died start one at a time, while the others wait. So a job that kills each worker does not take
 * others down with it again and again, until they count as crashed too.
 */
export class Suspects {
  /** Time at which each returns: UTC ms. */
  readonly #seen = new Map<string, number>();
  #current: { readonly job: string; readonly until: number } | undefined;
  #lastSlot = 0;

  /**
   * Undefined: it may start now, and `ended` must be called after it. Otherwise the time of the next attempt.
   * @param now UTC ms, by the clock that delayed jobs use
   */
  admit(job: string, now: number): number | undefined {
    const left = (this.#current?.until ?? now) - now;
    // If more is left than a whole probation, the clock was put back.
    const busy = left > 0 && left <= PROBATION;
    if (this.#seen.has(job) && !busy) {
      this.#seen.set(job, HAD_ITS_TURN);
      this.#current = { job, until: now + PROBATION };
      return undefined;
    }
    const free = now + (busy ? left : FIRST);
    // A slot that is too far ahead is from before the clock was put back.
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
      // Long past: another worker has taken it, which is not reported here. Far ahead: the clock was put back.
      if (Math.abs(at - now) > 2 * LONGEST) return this.#seen.delete(job);
    }
    return false;
  }

  /** Lets the next one start. */
  ended(job: string): void {
    if (this.#current?.job === job) this.#current = undefined;
  }
}
