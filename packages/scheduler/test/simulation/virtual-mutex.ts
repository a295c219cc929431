import type { Mutex, QueueKeys, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import type { Director } from "./director.js";

/** Real ms of a mutex in Redis for one virtual ms: so long that none expires on its own during a simulation. */
const SCALE = 100_000;
/** Parts that have a mutex (keys.ts). */
const PARTS = ["shards", "r", "a", "e", "b", "zone", "audit"];

/**
 * The store's own mutex, redlock in Redis, with a virtual time-to-live: Redis keeps it, scaled, and `pass` shortens it.
 * A failpoint that throws has the effect of a lost answer on redlock: not taken, or not released.
 */
export function virtualMutex(inner: Mutex, director: () => Director): Mutex {
  const now = () => director().elapsed;
  return {
    free: (key) => inner.free(key),
    async take(key, ttl) {
      const asked = now();
      const lease = await inner.take(key, ttl * SCALE).catch(() => undefined);
      if (!lease) return undefined;
      let until = asked + ttl;
      return {
        get remaining() {
          return Math.max(0, until - now());
        },
        async extend(more) {
          const from = now();
          const held = await lease.extend(more * SCALE);
          until = held ? from + more : 0;
          return held;
        },
        release: () => lease.release().catch(() => {}),
      };
    },
  };
}

/** Shortens each mutex by the time that passed. KEYS: mutexes. ARGV: 1 virtual ms, 2 real ms of one. */
const PASS = `
for _, key in ipairs(KEYS) do
  local left = redis.call("PTTL", key)
  if left >= 0 then
    local after = math.ceil(left / ARGV[2]) - ARGV[1]
    if after > 0 then redis.call("PEXPIRE", key, after * ARGV[2]) else redis.call("DEL", key) end
  end
end`;

/** Lets virtual time pass: expired mutexes are deleted. */
export async function pass(store: Store, keys: QueueKeys, ms: number): Promise<void> {
  const names = PARTS.map((part) => keys.mutex(part));
  await internalsOf(store).link.ask((client) => client.eval(PASS, names.length, ...names, ms, SCALE));
}
