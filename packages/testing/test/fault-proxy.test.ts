import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { eventually, type FaultProxy, startFaultProxy } from "../src/index.js";

const redis = sharedRedis();
let direct: Redis;
let proxy: FaultProxy;
const clients: Redis[] = [];

beforeAll(async () => {
  direct = new Redis(redis.url);
});
afterAll(async () => {
  direct.disconnect();
});
beforeEach(async () => {
  await direct.flushall();
  proxy = await startFaultProxy(redis);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await proxy.close();
});

/**
 * A client that resends nothing and queues nothing.
 * @param retries whether it reconnects
 */
async function connect(retries = true): Promise<Redis> {
  const client = new Redis(proxy.url, {
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => (retries ? 20 : null),
  });
  client.on("error", () => {});
  clients.push(client);
  await eventually(() => client.status === "ready");
  return client;
}

/** Errors of ioredis for a connection that ended. */
const GONE = /closed|max retries/i;

const state = async (promise: Promise<unknown>) => {
  const still = Symbol("still");
  const now = await Promise.race([promise, new Promise((go) => setTimeout(go, 30, still))]);
  return now === still ? "waits" : "over";
};

describe("a fault proxy", () => {
  it("forwards everything, and lists unanswered questions", async () => {
    const client = await connect();
    await client.set("big", "x".repeat(300_000));
    expect((await client.get("big"))?.length).toBe(300_000);
    expect(proxy.unanswered).toBe(0);
    const popped = client.blpop("list", 0);
    await eventually(() => proxy.unanswered === 1);
    await direct.rpush("list", "a");
    expect(await popped).toEqual(["list", "a"]);
    expect(proxy.unanswered).toBe(0);
  });

  it("cuts connections, failing commands under way, and accepts the next one", async () => {
    const client = await connect();
    const popped = client.blpop("list", 0).catch((error: Error) => error.message);
    await eventually(() => proxy.unanswered === 1);
    expect(proxy.cut()).toBe(1);
    expect(await popped).toMatch(GONE);
    await eventually(() => client.status === "ready");
    expect(await client.ping()).toBe("PONG");
  });

  it("refuses connections until it is healed", async () => {
    const client = await connect();
    const refused = new Promise<string>((resolve) => client.on("error", ({ message }) => resolve(message)));
    proxy.refuse();
    expect(await refused).toMatch(/ECONNREFUSED/);
    await proxy.heal();
    await eventually(() => client.status === "ready");
  });

  it("withholds a question, and those after it, until the release", async () => {
    const client = await connect();
    const withheld = proxy.withhold("question", "secret");
    const answers = Promise.all([client.set("secret", "1"), client.set("after", "2")]);
    await withheld;
    expect(await state(answers)).toBe("waits");
    expect(await direct.exists("secret", "after")).toBe(0);
    const passed = proxy.asked("later");
    proxy.release();
    expect(await answers).toEqual(["OK", "OK"]);
    await client.set("later", "3");
    await passed;
  });

  it("withholds an answer to a command that the server has done", async () => {
    const client = await connect();
    const withheld = proxy.withhold("answer", "counter");
    const answer = client.incr("counter").catch((error: Error) => error.message);
    await withheld;
    await eventually(async () => (await direct.get("counter")) === "1");
    expect(await state(answer)).toBe("waits");
    proxy.cut();
    expect(await answer).toMatch(GONE);
  });

  it("loses the answer to one question only", async () => {
    const client = await connect();
    const lost = proxy.loseAnswerTo("counter");
    const before = client.set("before", "1");
    const answer = client.incr("counter").catch((error: Error) => error.message);
    await lost;
    expect(await before).toBe("OK");
    expect(await answer).toMatch(GONE);
    expect(await direct.get("counter")).toBe("1");
  });

  it("counts the call of a function as a script's", async () => {
    const client = await connect();
    await direct.function(
      "LOAD",
      "REPLACE",
      `#!lua name=count\nredis.register_function("count", function(keys) return redis.call("INCR", keys[1]) end)`,
    );
    const copies = proxy.copy("evalsha");
    const lost = proxy.loseAnswerTo("evalsha");
    await client.set("fcall", "evalsh");
    const answer = client.fcall("count", 1, "n").catch((error: Error) => error.message);
    await lost;
    expect(await answer).toMatch(GONE);
    expect(await direct.get("n")).toBe("1");
    expect(copies.count).toBe(1);
    await direct.function("DELETE", "count");
  });

  it("loses the n-th answer", async () => {
    const client = await connect();
    proxy.lose(1);
    expect(await client.incr("n")).toBe(1);
    await expect(client.incr("n")).rejects.toThrow(GONE);
    expect(await direct.get("n")).toBe("2");
    expect(proxy.calm()).toBe(false);
    proxy.lose(1_000);
    expect(proxy.calm()).toBe(true);
  });

  it("keeps connections half open until it is healed, which ends them", async () => {
    const client = await connect();
    proxy.freeze();
    const answer = client.set("k", "v").catch((error: Error) => error.message);
    expect(await state(answer)).toBe("waits");
    expect(proxy.unanswered).toBe(1);
    expect(await direct.exists("k")).toBe(0);
    await proxy.heal();
    expect(await answer).toMatch(GONE);
    await eventually(() => client.status === "ready");
    expect(await client.set("k", "v")).toBe("OK");
  });

  it("slows the connection down, in order", async () => {
    const client = await connect();
    proxy.slow({ latency: 40, bytesPerSecond: 100_000 });
    const began = performance.now();
    const answers = await Promise.all([client.incr("n"), client.incr("n"), client.incr("n")]);
    expect(answers).toEqual([1, 2, 3]);
    expect(performance.now() - began).toBeGreaterThanOrEqual(75);
    await proxy.heal();
    expect(await client.incr("n")).toBe(4);
  });

  it("drops the pub/sub messages of one channel only", async () => {
    const client = await connect();
    const heard: string[] = [];
    client.on("message", (_channel, message) => heard.push(message));
    await client.subscribe("news");
    expect(proxy.unanswered).toBe(0);
    proxy.silence("bad");
    await direct.publish("news", "bad one");
    await direct.publish("news", "good");
    await eventually(() => heard.length === 1);
    expect(heard).toEqual(["good"]);
    expect(proxy.dropped).toBe(1);
  });

  it("delivers copies of questions again, as late and as often as asked", async () => {
    const client = await connect();
    const copies = proxy.copy("rpush");
    await client.set("other", "1");
    await client.rpush("list", "a");
    await client.rpush("list", "b");
    client.disconnect();
    expect(copies.count).toBe(2);
    expect(await direct.llen("list")).toBe(2);
    expect(await copies.deliver()).toEqual([":3\r\n", ":4\r\n"]);
    await copies.deliver();
    expect(await direct.lrange("list", 0, "-1")).toEqual(["a", "b", "a", "b", "a", "b"]);
    await proxy.heal();
    await (await connect()).rpush("list", "c");
    expect(copies.count).toBe(2);
  });
});
