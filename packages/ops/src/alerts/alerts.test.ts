import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { Store } from "@carillon/store";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";

const redis = sharedRedis();
let store: Store;
beforeEach(() => {
  store = new Store({ connection: redis.url });
});
afterEach(() => store.close());

it("a test of a destination says that the clock of Redis went back, and stores nothing", async () => {
  const time = store.serverTime.bind(store);
  store.serverTime = async () => (await time()) + 60_000;
  const { alerts } = operatorOf(new Client({ store }));
  await expect(alerts.test({ target: "https://example.com/alerts" })).rejects.toMatchObject({
    code: "CONFLICT",
    message: expect.stringContaining("the clock of Redis went back"),
  });
  expect(await store.tasks.count("carillon-alerts")).toBe(0);
});
