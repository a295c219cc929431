import type { Client } from "@carillon/sdk";
import { Store, scopeOf } from "@carillon/sdk/internal";
import type { OldScheduler } from "@carillon/store/internal";

/** Opens the Redis of BullMQ for as long as `use` takes. @param url default: that of the client */
export async function withBullmq<T>(
  client: Client,
  url: string | undefined,
  use: (redis: OldScheduler["redis"]) => Promise<T>,
): Promise<T> {
  const store = url === undefined ? scopeOf(client).store : new Store({ connection: url });
  try {
    // Only then is a cluster with one address known as such.
    await store.serverTime();
    const redis = store.connect("patient");
    try {
      return await use(redis);
    } finally {
      redis.disconnect();
    }
  } finally {
    if (url !== undefined) await store.close();
  }
}
