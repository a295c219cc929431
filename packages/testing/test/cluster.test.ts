import { Cluster } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RedisCluster, startCluster } from "../src/index.js";

let cluster: RedisCluster;
let client: Cluster;

beforeAll(async () => {
  cluster = await startCluster();
  client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
});

afterAll(async () => {
  client.disconnect();
  await cluster.stop();
});

it("accepts concurrent writes to every master", async () => {
  const keys = Array.from({ length: 60 }, (_, index) => `{carillon:q${index}}:task`);
  await Promise.all(keys.map((key) => client.set(key, key)));
  expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);

  const sizes = await Promise.all(client.nodes("master").map((node) => node.dbsize()));
  expect(sizes).toHaveLength(3);
  expect(sizes.every((size) => size > 0)).toBe(true);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(60);
});

it("refuses a command whose keys lie in different slots, as a real cluster does", async () => {
  await expect(client.eval("return 1", 2, "{a}:1", "{b}:1")).rejects.toThrow(/slot/i);
});
