import { type ConnectionSpec, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, freePort, type RedisSentinel, startFaultProxy, startSentinel } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { followFailovers } from "../src/redis/sentinel.js";
import { Subscription } from "../src/redis/subscription.js";

let group: RedisSentinel;
const open: (() => unknown)[] = [];

beforeAll(async () => {
  group = await startSentinel({ password: "bell", sentinelPassword: "tower" });
});
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
afterAll(() => group.stop());

function connect(connection: ConnectionSpec, readyTimeout = 5_000): Store {
  const store = new Store({ connection, readyTimeout });
  open.push(() => store.close());
  return store;
}

/** Messages of a subscription that sends no commands after its start. */
async function listen(store: Store): Promise<string[]> {
  const heard: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const ears = { message: (text: string) => heard.push(text), standing: resolve, failed: reject };
    const subscription = new Subscription(store.connect("safe"), "bell", ears);
    open.push(() => subscription.stop());
  });
  return heard;
}

/** Port of the server that the store is connected to. */
async function port(store: Store): Promise<number> {
  const info = await internalsOf(store).link.ask((client) => client.info());
  return Number(/tcp_port:(\d+)/.exec(info)?.[1]);
}

/** A client of the application, with its own options. */
function yours(): Redis {
  const client = new Redis({
    sentinels: group.sentinels.map(({ host, port }) => ({ host, port })),
    name: group.masterName,
    role: "slave",
    password: "bell",
    sentinelPassword: "tower",
  });
  client.on("error", () => {});
  open.push(() => client.disconnect());
  return client;
}

describe.each([
  ["a URL", () => group.url],
  ["an ioredis client of yours", yours],
])("through Sentinels, by %s", (_, spec) => {
  it("a connection goes to the master, and after a failover to the new one", async () => {
    const store = connect(spec());
    const bull = store.connect("patient");
    open.push(() => bull.disconnect());
    const heard = await listen(store);
    bull.on("error", () => {});
    expect(await port(store)).toBe((await group.currentMaster()).port);

    await group.failover();

    await eventually(async () => expect(await port(store)).toBe(group.master.port));
    await eventually(async () => {
      await bull.publish("bell", "rings");
      return heard.includes("rings");
    });
  });
});

it("a connection leaves a frozen master, and repeats no command", async () => {
  const log = vi.spyOn(console, "error");
  const store = connect(group.url);
  const heard = await listen(store);
  const old = await group.currentMaster();
  expect(await port(store)).toBe(old.port);
  // One of the Sentinels fails too: the others suffice, and nothing is logged.
  const [sentinel] = group.sentinels as [(typeof group.sentinels)[number]];
  await sentinel.kill();

  old.pause();
  try {
    await expect(internalsOf(store).link.client.incr("unanswered")).rejects.toThrow();
    await eventually(async () => expect(await port(store)).not.toBe(old.port));
    expect(await port(store)).toBe((await group.currentMaster()).port);
    expect(await internalsOf(store).link.client.get("unanswered")).toBeNull();
    // The connection waits for no answer: only the Sentinels can report the failover.
    await eventually(async () => {
      await internalsOf(store).link.client.publish("bell", "rings");
      return heard.includes("rings");
    });
  } finally {
    old.continue();
    await sentinel.start();
  }
  expect(log).not.toHaveBeenCalled();
  log.mockRestore();
});

it("a connection waits for Sentinels that are down, and logs it", async () => {
  const url = new URL(group.url.replace(/,.*\//, "/").replace("redis+sentinel:", "http:"));
  url.port = String(await freePort());
  const store = connect(url.href.replace("http:", "redis+sentinel:"), 300);
  await expect(store.serverTime()).rejects.toMatchObject({
    code: "REDIS_UNAVAILABLE",
    message: expect.stringContaining("sentinels are unreachable"),
  });
});

it.each([
  ["the name of the master", "/carillon?", "/bells?", "REDIS_UNAVAILABLE", "name no master"],
  ["the Sentinels' password", "=tower", "=hunter2", "REDIS_AUTH", "WRONGPASS"],
  ["the password", ":bell@", ":hunter2@", "REDIS_AUTH", "WRONGPASS"],
])("a connection reports that %s is wrong", async (_, right, wrong, code, text) => {
  const store = connect(group.url.replace(right, wrong), 500);
  const error = await store.serverTime().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code, message: expect.stringContaining(text) });
  expect((error as Error).message).not.toContain("hunter2");
});

describe("a Sentinel that hangs", () => {
  const pace = { reconnect: 50, askEvery: 50, silence: 300 };

  /** Follows one Sentinel, through a proxy. */
  async function follow(paces = pace) {
    const [sentinel] = group.sentinels as [(typeof group.sentinels)[number]];
    const proxy = await startFaultProxy(sentinel);
    open.push(() => proxy.close());
    const subscribe = vi.spyOn(Redis.prototype, "subscribe");
    const { host, port } = proxy;
    const names = { name: group.masterName, password: "bell", sentinelPassword: "tower" };
    const client = followFailovers(new Redis({ sentinels: [{ host, port }], ...names }), paces);
    client.on("error", () => {});
    open.push(() => client.disconnect());
    await eventually(() => expect(subscribe).toHaveBeenCalled());
    await subscribe.mock.results[0]?.value;
    const ear = subscribe.mock.contexts[0] as unknown as Redis;
    subscribe.mockRestore();
    return { client, proxy, ear };
  }

  it("does not keep the process running", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    open.push(() => process.off("unhandledRejection", unhandled));
    const { client, proxy, ear } = await follow({ ...pace, silence: 60_000 });
    proxy.cut();
    await proxy.withhold("answer", "+switch-master");
    client.disconnect();
    await eventually(() => ear.status === "end");
    expect(unhandled).not.toHaveBeenCalled();
  });

  it("is replaced by another connection, even if it never answers", async () => {
    const { proxy } = await follow();
    await proxy.withhold("answer", "ping");
    await proxy.asked("+switch-master");
  });
});
