import { SHARDS } from "@carillon/core/internal";
import { isShard, type Part } from "../part.js";

/** Defines a burst, and how early it is prepared. */
export interface BurstSettings {
  /** Number of shards of a queue that must come due at one instant; default all. */
  readonly shards: number;
  /** Lead in ms with which a burst is prepared; default 500. */
  readonly ahead: number;
}

export const DEFAULT_BURSTS: BurstSettings = { shards: SHARDS, ahead: 500 };
export const NO_BURSTS: BurstSettings = { shards: Number.POSITIVE_INFINITY, ahead: 0 };

/** Coming bursts: times at which enough shards of a queue come due at once. */
export class Bursts {
  readonly #shards: number;
  readonly #times = new Map<string, readonly number[]>();

  constructor({ shards }: Pick<BurstSettings, "shards"> = DEFAULT_BURSTS) {
    this.#shards = shards;
  }

  /** Called when times of a queue change, because each wake-up reads the result. @param parts if empty, the queue is forgotten */
  find(queue: string, parts: ReadonlyMap<Part, number>): void {
    const counts = new Map<number, number>();
    for (const [part, at] of parts) if (isShard(part)) counts.set(at, (counts.get(at) ?? 0) + 1);
    const times = [...counts].flatMap(([at, count]) => (count >= this.#shards ? [at] : []));
    if (times.length > 0) this.#times.set(queue, times);
    else this.#times.delete(queue);
  }

  has(queue: string): boolean {
    return this.#times.has(queue);
  }

  /** Times of the bursts by queue. */
  [Symbol.iterator](): Iterator<[queue: string, times: readonly number[]]> {
    return this.#times.entries();
  }
}
