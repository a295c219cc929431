import { Cluster, Redis, type RedisOptions } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { clientTls, eventually, startCluster, startRedis, startSentinel } from "../src/index.js";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function ping(options: Omit<RedisOptions, "replyMapping">): Promise<string> {
  const client = new Redis({ ...options, retryStrategy: () => null, lazyConnect: true });
  let cause: unknown;
  client.on("error", (error) => {
    cause ??= error;
  });
  try {
    await client.connect();
    return await client.ping();
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
}

describe("TLS", () => {
  it("is required by the server, with a certificate of the authority", async () => {
    const redis = await startRedis({ tls: true });
    open.push(() => redis.stop());
    const { host, port } = redis;
    expect(redis.url).toBe(`rediss://127.0.0.1:${port}`);

    expect(await ping({ host, port, tls: clientTls() })).toBe("PONG");
    await expect(ping({ host, port, tls: { ca: clientTls().ca } })).rejects.toThrow();
    await expect(ping({ host, port, tls: {} })).rejects.toThrow(/certificate|self-signed/);
    await expect(ping({ host, port })).rejects.toThrow();
  });

  it("protects all connections of a Sentinel group", async () => {
    const group = await startSentinel({ tls: true, replicas: 1 });
    open.push(() => group.stop());
    expect(group.url).toMatch(/^rediss\+sentinel:/);
    await group.failover();
    const { host, port } = group.master;
    expect(await ping({ host, port, tls: clientTls() })).toBe("PONG");
  });

  it("protects all connections of a cluster", async () => {
    const cluster = await startCluster({ tls: true });
    open.push(() => cluster.stop());
    const client = new Cluster(
      cluster.nodes.map(({ host, port }) => ({ host, port })),
      { redisOptions: { tls: clientTls() } },
    );
    open.push(() => client.disconnect());
    await eventually(async () => (await client.set("{bell}", "rings")) === "OK");
  });
});

it("a server takes an ACL file", async () => {
  const redis = await startRedis({
    acl: "user default off\nuser reader on >secret ~bell:* +get +info +ping",
  });
  open.push(() => redis.stop());
  const reader = { host: redis.host, port: redis.port, username: "reader", password: "secret" };
  expect(await ping(reader)).toBe("PONG");
  await expect(ping({ host: redis.host, port: redis.port })).rejects.toThrow("NOAUTH");
});
