import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually, type RedisCluster, startCluster } from "../src/index.js";

let cluster: RedisCluster;
let client: Cluster;

beforeAll(async () => {
  cluster = await startCluster({ replicas: 1 });
  client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
  client.on("error", () => {});
});

afterAll(async () => {
  client.disconnect();
  await cluster.stop();
});

it("moves a slot with its keys, step by step, under a client that uses it", async () => {
  const keys = Array.from({ length: 50 }, (_, index) => `{carillon:q}:${index}`);
  for (const key of keys) await client.set(key, key);
  const slot = cluster.slotOf("{carillon:q}:0");
  const from = await cluster.masterOf(slot);
  const to = cluster.nodes.find((node) => node !== from) as (typeof cluster.nodes)[number];
  const seen: string[] = [];

  await cluster.moveSlot(slot, to, {
    onStep: async (step) => {
      seen.push(step);
      // Keys on this server, on another one, or in migration: the client follows redirects.
      for (const key of keys) expect(await client.get(key)).toBe(key);
    },
  });

  expect(seen).toEqual(["migrating", "keys", "keys", "keys", "moved"]);
  expect(await cluster.masterOf(slot)).toBe(to);
  expect(await client.set("{carillon:q}:0", "moved")).toBe("OK");
});

it("promotes a replica when its master dies", async () => {
  const key = "{carillon:other}:0";
  const slot = cluster.slotOf(key);
  const master = await cluster.masterOf(slot);
  const direct = new Redis(master.url);
  await direct.set(key, "rings");
  expect(await direct.wait(1, 5_000)).toBe(1);
  direct.disconnect();

  await master.kill();
  const heir = await eventually(async () => {
    const now = await cluster.masterOf(slot);
    return now !== master && now;
  });

  expect(heir).toBe(cluster.replicaOf(master));
  await eventually(async () => (await client.get(key)) === "rings");
});
