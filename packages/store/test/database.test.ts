import { parseTask } from "@carillon/core";
import { Store } from "@carillon/store";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";

const TASK = parseTask({ id: "t", type: "noop", queue: "bells", schedule: { every: "1h" } });

describe("a database that cannot be selected", () => {
  const redis = sharedRedis();
  let admin: Redis;
  const stores: Store[] = [];
  beforeAll(async () => {
    admin = new Redis(redis.url);
    await admin.call("ACL", "SETUSER", "bound", "on", ">secret", "~*", "&*", "+@all", "-select");
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await admin.flushall();
  });
  afterAll(async () => {
    admin.disconnect();
  });

  function open(url: string): Store {
    const store = new Store({ connection: url, namespace: "carillon", readyTimeout: 500, onError: () => {} });
    stores.push(store);
    return store;
  }

  it.each([
    ["there is none of that number", "/99", "REDIS_UNAVAILABLE", "number at the end"],
    ["the user may not", "/5", "REDIS_AUTH", "+select"],
  ])("leads to no write into another one (%s)", async (_why, db, code, remedy) => {
    const url = new URL(redis.url);
    if (db === "/5") Object.assign(url, { username: "bound", password: "secret" });
    const store = open(`${url.href.replace(/\/$/, "")}${db}`);
    const refused = { code, remedy: expect.stringContaining(remedy) };
    await expect(store.tasks.put("bells", [TASK])).rejects.toMatchObject(refused);
    await expect(store.tasks.get(TASK.definition)).rejects.toMatchObject(refused);
    expect(await admin.keys("*")).toEqual([]);
  });

  it("a database that can be selected is used", async () => {
    await open(`${redis.url.replace(/\/$/, "")}/3`).tasks.put("bells", [TASK]);
    expect(await admin.dbsize()).toBe(0);
    expect(await admin.info("keyspace")).toMatch(/db3:keys=/);
  });
});
