import type Redlock from "redlock";
import type { RedisClient } from "./connection.js";

/**
 * Saves wasted work, no more: two nodes that both believe they hold it do no harm, the generation fence decides.
 */
export interface Mutex {
  /** Takes `key` for `ttl` ms. Undefined: someone else holds it. Never waits. @throws what Redis answered */
  take(key: string, ttl: number): Promise<Lease | undefined>;
  /** Takes `key` from its holder, which learns that when it extends its lease. */
  free(key: string): Promise<void>;
}

export interface Lease {
  /** Rest in ms for which the lease still saves work; 0 when it has run out. */
  readonly remaining: number;
  /** @returns whether it is still held; false also if that is unknown */
  extend(ttl: number): Promise<boolean>;
  /** Never throws: an expired or lost lease is gone anyway. */
  release(): Promise<void>;
}

/** Loaded by the first that takes a mutex: only nodes do. */
let Lock: typeof Redlock | undefined;

/** redlock 4.2.0. `retryCount: 0` belongs on the instance: this version ignores a 0 given per call. */
export function redlockMutex(clientOf: () => RedisClient): Mutex {
  return {
    async free(key) {
      await clientOf().del(key);
    },
    async take(key, ttl) {
      Lock ??= (await import("redlock")).default;
      // One for each call: redlock reports an error of Redis as an event, and then that the lock could not be taken.
      const redlock = new Lock([clientOf() as unknown as Redlock.CompatibleRedisClient], {
        retryCount: 0,
      });
      let failure: unknown;
      redlock.on("clientError", (error) => {
        failure ??= error;
      });
      try {
        const asked = performance.now();
        const lock = await redlock.lock(key, ttl);
        let until = asked + ttl;
        return {
          get remaining() {
            return Math.max(0, until - performance.now());
          },
          async extend(more) {
            const from = performance.now();
            // Lets Redis decide: redlock compares with the wall clock, which may have jumped.
            lock.expiration = Number.POSITIVE_INFINITY;
            const held = await lock.extend(more).then(
              () => true,
              () => false,
            );
            until = held ? from + more : 0;
            return held;
          },
          async release() {
            await lock.unlock().catch(() => {});
          },
        };
      } catch {
        if (failure !== undefined) throw failure;
        return undefined;
      }
    },
  };
}

/** For tests of the fence: everybody gets everything. */
export const NO_MUTEX: Mutex = {
  async free() {},
  async take() {
    return { remaining: Number.POSITIVE_INFINITY, extend: async () => true, release: async () => {} };
  },
};
