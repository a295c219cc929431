import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";

const redis = sharedRedis();
let client: Client;
let bound: Client;
const put = (id: string, more: object = {}) =>
  client.put({ id, queue: "q", type: "report.daily", schedule: { manual: true }, ...more });
const suggest = async (of: "queue" | "owner" | "tag" | "type", starts?: string, from = client) =>
  (await operatorOf(from).names.list({ of, starts })).names;

beforeAll(async () => {
  client = new Client({ connection: redis.url });
  bound = new Client({ connection: redis.url, owner: "acme" });
  await put("a", { owner: "acme", tags: ["nightly", "billing"] });
  await put("b", { owner: "acme-eu", tags: ["nightly"], queue: "r", type: "sync" });
  await put("c", { owner: "beta", tags: ["secret"], queue: "r" });
  await operatorOf(client).types.allow({ types: ["report.daily", "sync", "unused"] });
});
afterAll(async () => {
  await Promise.all([client.close(), bound.close()]);
});

it("names that exist are suggested, by their beginning", async () => {
  expect(await suggest("queue")).toEqual(["q", "r"]);
  expect(await suggest("owner")).toEqual(["acme", "acme-eu", "beta"]);
  expect(await suggest("owner", "acme")).toEqual(["acme", "acme-eu"]);
  expect(await suggest("tag", "n")).toEqual(["nightly"]);
  expect(await suggest("tag")).toEqual(["billing", "nightly", "secret"]);
  expect(await suggest("type")).toEqual(["report.daily", "sync", "unused"]);
  expect(await suggest("owner", "acme/")).toEqual([]);
});

it("a caller that is bound to an owner sees the names of its own tasks alone", async () => {
  expect(await suggest("queue", "", bound)).toEqual(["q"]);
  expect(await suggest("owner", "", bound)).toEqual(["acme"]);
  expect(await suggest("owner", "b", bound)).toEqual([]);
  expect(await suggest("tag", "", bound)).toEqual(["billing", "nightly"]);
  expect(await suggest("type", "", bound)).toEqual(["report.daily"]);
});

it("a tag is suggested as long as a task has it", async () => {
  await put("d", { tags: ["short", "long"] });
  await put("e", { tags: ["long"] });
  await put("d", { tags: ["long"] });
  expect(await suggest("tag", "s")).toEqual(["secret"]);
  await client.delete("d");
  expect(await suggest("tag", "l")).toEqual(["long"]);
  await client.delete("e");
  expect(await suggest("tag", "l")).toEqual([]);
});

it("with 1,000 owners the answer is bounded, and costs one script a queue", async () => {
  const own = new Client({ connection: redis.url, namespace: "large" });
  const admin = new Redis(redis.url);
  await own.put({ id: "t", queue: "q", type: "x", schedule: { manual: true } });
  // The index alone: names of 100,000 tasks.
  for (let n = 0; n < 100; n++) {
    const names = Array.from({ length: 1_000 }, (_, i) => ["0", `o${n * 10 + (i % 10)}/t${i} x`]).flat();
    await admin.zadd("{large:q}:~tasks", ...(names as [string, string]));
  }
  const { names, more } = await operatorOf(own).names.list({ of: "owner" });
  expect([names.length, names[1], more]).toEqual([100, "o1", true]);
  const narrowed = await operatorOf(own).names.list({ of: "owner", starts: "o99" });
  expect(narrowed).toEqual({
    names: ["o99", ...Array.from({ length: 10 }, (_, i) => `o99${i}`)],
    more: false,
  });
  admin.disconnect();
  await own.close();
});
