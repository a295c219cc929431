import { existsSync } from "node:fs";
import { CarillonError } from "@carillon/core";
import { Redis } from "ioredis";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { eventually, type RedisServer, startRedis } from "../src/index.js";

const servers: RedisServer[] = [];
const clients: Redis[] = [];

async function server(options?: Parameters<typeof startRedis>[0]): Promise<RedisServer> {
  const started = await startRedis(options);
  servers.push(started);
  return started;
}

function connect(to: RedisServer, options: { commandTimeout?: number } = {}): Redis {
  const client = new Redis(to.url, { maxRetriesPerRequest: 1, retryStrategy: () => 50, ...options });
  client.on("error", () => {});
  clients.push(client);
  return client;
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});
afterAll(() => Promise.all(servers.map((one) => one.stop())));

describe("startRedis", () => {
  it("gives a private server that evicts nothing, saves nothing and ends with stop()", async () => {
    const redis = await server();
    const client = connect(redis);
    const config = async (name: string) => (await client.config("GET", name))[1];
    expect({
      policy: await config("maxmemory-policy"),
      appendonly: await config("appendonly"),
      save: await config("save"),
      bind: await config("bind"),
      port: await config("port"),
    }).toEqual({
      policy: "noeviction",
      appendonly: "no",
      save: "",
      bind: "127.0.0.1",
      port: String(redis.port),
    });
    const dir = (await config("dir")) as string;
    const pid = redis.pid as number;

    await redis.stop();

    expect(alive(pid)).toBe(false);
    expect(existsSync(dir)).toBe(false);
    expect(redis.pid).toBeUndefined();
  });

  it("passes further directives on", async () => {
    const redis = await server({ config: { maxmemory: "50mb", "maxmemory-policy": "allkeys-lru" } });
    const client = connect(redis);
    expect(await client.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "allkeys-lru"]);
    expect(await client.config("GET", "maxmemory")).toEqual(["maxmemory", String(50 * 1024 * 1024)]);
  });

  it("starts with a password", async () => {
    const redis = await server({ config: { requirepass: "bell" } });
    await expect(connect(redis).ping()).rejects.toThrow("NOAUTH");
  });

  it("gives different servers to simultaneous callers", async () => {
    const many = await Promise.all(Array.from({ length: 5 }, () => server()));
    expect(new Set(many.map((one) => one.port)).size).toBe(5);
  });

  it("names the reason when the server does not start", async () => {
    const redis = await server();
    const error = await startRedis({ port: redis.port }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CarillonError);
    expect(error).toMatchObject({
      code: "REDIS_UNAVAILABLE",
      message: expect.stringMatching(/address already in use/i),
    });
    await expect(startRedis({ config: { "no-such-directive": 1 } })).rejects.toThrow("did not start");
  });
});

describe("RedisServer", () => {
  it("keeps appended data through a crash, on the same port", async () => {
    const redis = await server({ appendonly: true, config: { appendfsync: "always" } });
    const { port, pid } = redis;
    await connect(redis).set("bell", "rings");

    await redis.kill();
    expect(redis.pid).toBeUndefined();
    await redis.start();

    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
    expect(await connect(redis).get("bell")).toBe("rings");
  });

  it("is empty after a restart without files", async () => {
    const redis = await server();
    await connect(redis).set("bell", "rings");
    await redis.restart();
    expect(await connect(redis).dbsize()).toBe(0);
  });

  it("answers nothing while paused, and everything afterwards", async () => {
    const redis = await server();
    const client = connect(redis, { commandTimeout: 200 });
    await client.ping();

    redis.pause();
    await expect(client.set("late", "1")).rejects.toThrow("timed out");
    redis.continue();

    await eventually(async () => (await client.get("late")) === "1");
  });

  it("stops even if it is paused", async () => {
    const redis = await server();
    const pid = redis.pid as number;
    redis.pause();
    await redis.stop();
    expect(alive(pid)).toBe(false);
  });
});
