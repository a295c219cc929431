import type { Ctx } from "../context.js";

/** Longest age that a caller may accept, in seconds. */
const OLDEST = 60;
/** Answers that are kept. */
const MOST = 500;

interface Kept {
  readonly answer: Promise<unknown>;
  /** Start of its computation: it knows nothing of later changes. */
  readonly from: number;
  readonly until: number;
  /** Those who wait for it; aborted once they have left. */
  readonly waiting: AbortSignal[];
}

/** Computes an answer, unless `isWanted` says that everybody who waited for it has left. */
type Compute<Answer> = (isWanted: () => boolean) => Promise<Answer>;

/** Answers of reads that several callers ask for at nearly the same time: each is computed once. */
export class SharedAnswers {
  readonly #kept = new Map<string, Kept>();
  readonly #now: () => number;

  constructor(now = () => performance.now()) {
    this.#now = now;
  }

  /**
   * The answer to this key if one is kept, or being computed, that is young enough for the request; otherwise a new one. Errors are not
   * kept.
   *
   * @param key everything that the answer depends on: the owner that the caller is bound to, the operation, its input
   */
  async get<Answer>(c: Ctx, key: readonly unknown[], compute: Compute<Answer>): Promise<Answer> {
    const { signal } = c.req.raw;
    const maxAge = maxAgeOf(c);
    if (maxAge === 0) return compute(() => !signal.aborted);
    const name = JSON.stringify(key);
    const now = this.#now();
    const known = this.#kept.get(name);
    if (known && now - known.from < maxAge) {
      known.waiting.push(signal);
      return known.answer as Promise<Answer>;
    }
    const waiting = [signal];
    const answer = compute(() => waiting.some(({ aborted }) => !aborted));
    const kept = { answer, from: now, until: now + maxAge, waiting };
    for (const [old, { until }] of this.#kept) {
      if (old === name || until <= now || this.#kept.size >= MOST) this.#kept.delete(old);
    }
    this.#kept.set(name, kept);
    answer.then(
      () => waiting.splice(0),
      () => this.#kept.get(name) === kept && this.#kept.delete(name),
    );
    return answer;
  }

  /** Forgets all answers: something has changed. */
  clear(): void {
    this.#kept.clear();
  }
}

/** Age in ms of an answer that a request accepts: `Cache-Control: max-age=1`. Without it, answers are new. */
function maxAgeOf(c: Ctx): number {
  const [, seconds] =
    /(?:^|[ ,])max-age=(\d{1,9})(?:$|[ ,])/i.exec(c.req.header("cache-control") ?? "") ?? [];
  return Math.min(Number(seconds ?? 0), OLDEST) * 1_000;
}
