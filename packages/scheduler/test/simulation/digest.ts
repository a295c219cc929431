import { createHash } from "node:crypto";
import type { Redis } from "ioredis";

/** Entries of BullMQ's event stream have ids of the real time, locks hold random values, and senders count on over histories. */
const NOT_OURS = /:events$|:lock$|~lock:|:sent:/;

/** Number of a checkpoint: its sender counts on over histories. */
const SENT = "kept";

/** One hash of all data in Redis: the same for the same history. */
export async function digest(redis: Redis): Promise<string> {
  const keys = (await redis.keys("*")).filter((key) => !NOT_OURS.test(key)).sort();
  const hash = createHash("sha256");
  for (const key of keys) hash.update(`${key} ${JSON.stringify(await content(redis, key))}\n`);
  return hash.digest("hex");
}

async function content(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case "hash":
      return Object.entries(await redis.hgetall(key))
        .filter(([field]) => field !== SENT)
        .sort(([a], [b]) => (a < b ? -1 : 1));
    case "zset":
      return redis.zrange(key, 0, "-1", "WITHSCORES");
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return (await redis.smembers(key)).sort();
    case "stream":
      // Ids of entries are left out: they hold the real time.
      return (await redis.xrange(key, "-", "+")).map(([, fields]) => fields);
    default:
      return redis.get(key);
  }
}
