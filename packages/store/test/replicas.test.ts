import { Store } from "@carillon/store";
import { startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { expect, it } from "vitest";

it("a master with too few replicas gives the code, writes nothing, and recovers by itself", async () => {
  const redis = await startRedis({ config: { "min-replicas-to-write": 1 } });
  const store = new Store({ connection: redis.url });
  const admin = new Redis(redis.url);
  try {
    const told = { code: "REDIS_UNAVAILABLE", message: expect.stringContaining("too few replicas") };
    // Fails for a script and for a transaction.
    await expect(store.registry.enter("bells")).rejects.toMatchObject(told);
    await expect(store.registry.setTypes(["ring"])).rejects.toMatchObject(told);
    expect(await admin.dbsize()).toBe(0);
    await admin.config("SET", "min-replicas-to-write", 0);
    await store.registry.enter("bells");
    expect(await store.registry.queues()).toEqual(["bells"]);
  } finally {
    admin.disconnect();
    await store.close();
    await redis.stop();
  }
});
