import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { eventually, type RedisSentinel, type SentinelOptions, startSentinel } from "../src/index.js";
import { withConnection } from "../src/redis.js";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function start(options?: SentinelOptions): Promise<RedisSentinel> {
  const group = await startSentinel(options);
  open.push(() => group.stop());
  return group;
}

function connect(
  group: RedisSentinel,
  options: { sentinelPassword?: string; password?: string } = {},
): Redis {
  const sentinels = group.sentinels.map(({ host, port }) => ({ host, port }));
  const client = new Redis({ sentinels, name: group.masterName, ...options });
  client.on("error", () => {});
  open.push(() => client.disconnect());
  return client;
}

/**
 * Writes until every server has the value, so that no failover loses it. `WAIT` would not show that: if the master
 * changes in between, ioredis sends it to the new one, which answers yes without the write.
 */
async function hold(group: RedisSentinel, client: Redis, value: string): Promise<void> {
  const { servers } = group;
  await eventually(async () => {
    await client.set("bell", value);
    const held = servers.map((server) => withConnection(server, (redis) => redis.get("bell")));
    expect(await Promise.all(held)).toEqual(servers.map(() => value));
  });
}

describe("startSentinel", () => {
  it("fails over by itself when the master dies, and on demand while it is up", async () => {
    const group = await start();
    expect(group.servers).toHaveLength(3);
    expect(group.sentinels).toHaveLength(3);
    expect(group.url).toBe(
      `redis+sentinel://${group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/carillon`,
    );
    const first = group.master;
    const client = connect(group);
    await hold(group, client, "rings");

    await first.kill();
    const second = await eventually(async () => {
      const now = await group.currentMaster();
      return now !== first && now;
    });
    await eventually(async () => expect(await client.get("bell")).toBe("rings"));
    expect(group.master).toBe(second);

    // The old master returns as a replica of the new one.
    await first.start();
    await hold(group, client, "again");

    // On a busy machine the Sentinels may have switched to another master since.
    const before = await group.currentMaster();
    await group.failover();
    expect(group.master).not.toBe(before);
    await eventually(async () => expect(await client.get("bell")).toBe("again"));
    expect(before.pid).toBeDefined();
  });

  it("uses passwords of both kinds", async () => {
    const group = await start({ replicas: 1, password: "bell", sentinelPassword: "tower" });
    const hosts = group.sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",");
    expect(group.url).toBe(`redis+sentinel://:bell@${hosts}/carillon?sentinelPassword=tower`);
    const client = connect(group, { password: "bell", sentinelPassword: "tower" });
    expect(await client.set("bell", "rings")).toBe("OK");
    await group.failover();
    await eventually(async () => (await client.set("bell", "still")) === "OK");
  });
});
