import type { Lease, Mutex } from "./mutex.js";

/**
 * Points at which a test makes a process stop, die or stall: `before <script>` and `after <script>` for each script
 * that changes or reads Redis (after: it ran, its reply is not processed yet), and the same for `lock`, `renew`,
 * `unlock` and `free` of a mutex. A transition is one script, so nothing can be half done between these points. `key`: the script's first key,
 * or the mutex's. An exception counts as a connection error: after a script, as a lost reply.
 */
export type Failpoint = (point: string, key: string) => void | Promise<void>;

/** A mutex whose steps pass a failpoint. */
export function failing(mutex: Mutex, failpoint: Failpoint): Mutex {
  return {
    async free(key) {
      await failpoint("before free", key);
      await mutex.free(key);
      await failpoint("after free", key);
    },
    async take(key, ttl) {
      await failpoint("before lock", key);
      const lease = await mutex.take(key, ttl);
      await failpoint("after lock", key);
      return lease && failingLease(lease, key, failpoint);
    },
  };
}

function failingLease(lease: Lease, key: string, failpoint: Failpoint): Lease {
  return {
    get remaining() {
      return lease.remaining;
    },
    async extend(ttl) {
      try {
        await failpoint("before renew", key);
        const held = await lease.extend(ttl);
        await failpoint("after renew", key);
        return held;
      } catch {
        return false;
      }
    },
    async release() {
      await failpoint("before unlock", key);
      await lease.release();
      await failpoint("after unlock", key);
    },
  };
}
