import {
  eventually,
  type FaultProxy,
  type RedisServer,
  startFaultProxy,
  startRedis,
} from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Subscription } from "../src/redis/subscription.js";

let redis: RedisServer;
let proxy: FaultProxy;
let speaker: Redis;
const ends: (() => void)[] = [];

beforeAll(async () => {
  redis = await startRedis();
  speaker = new Redis(redis.url);
});
afterAll(async () => {
  speaker?.disconnect();
  await redis?.stop();
});
beforeEach(async () => {
  proxy = await startFaultProxy(redis);
});
afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await proxy.close();
});

function listen(askEvery?: number) {
  const heard: string[] = [];
  let standing = 0;
  const client = new Redis(proxy.url, { socketTimeout: 100, retryStrategy: () => 10 });
  const ears = {
    message: (text: string) => void heard.push(text),
    standing: () => {
      standing += 1;
    },
    failed() {},
  };
  const subscription = new Subscription(client, "bells", ears, askEvery);
  ends.push(() => subscription.stop());
  return { heard, standings: () => standing };
}

test("a cut connection is replaced, and reports that messages may be missed", async () => {
  const { heard, standings } = listen();
  await eventually(() => expect(standings()).toBe(1));
  await speaker.publish("bells", "one");
  await eventually(() => expect(heard).toEqual(["one"]));
  proxy.cut();
  await eventually(() => expect(standings()).toBe(2));
  await speaker.publish("bells", "two");
  await eventually(() => expect(heard).toEqual(["one", "two"]));
});

test("a connection that has become silent is detected", async () => {
  const { standings } = listen(20);
  await eventually(() => expect(standings()).toBe(1));
  await proxy.withhold("answer", "ping");
  await eventually(() => expect(standings()).toBe(2));
});
