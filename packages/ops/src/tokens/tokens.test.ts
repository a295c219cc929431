import { type Operator, operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { sharedRedis } from "../../../../test/helpers.js";

const redis = sharedRedis();
let admin: Redis;
let client: Client;
let ops: Operator;
beforeAll(async () => {
  admin = new Redis(redis.url);
  client = new Client({ connection: redis.url, by: "ann", origin: "test" });
  ops = operatorOf(client);
});
beforeEach(async () => void (await admin.flushall()));
afterAll(async () => {
  await client.close();
  admin.disconnect();
});

const KEY = "{carillon}:tokens";
const later = () => Date.now() + 3_600_000;

it("a token is created with its secret, listed without it, and revoked", async () => {
  const expires = later();
  const { token, secret } = await ops.tokens.create({
    name: "ci_1",
    role: "operator",
    owners: ["acme", "beta", "acme"],
    expires,
  });
  const stored = { name: "ci_1", role: "operator", owners: ["acme", "beta"], expires, createdBy: "ann" };
  expect(token).toEqual({ ...stored, created: expect.any(Number), expired: false });
  expect(secret).toMatch(/^carillon_ci_1_[\w-]{43}$/);
  await ops.tokens.create({ name: "all", role: "admin" });
  expect((await ops.tokens.list()).tokens).toEqual([
    expect.objectContaining({ name: "all", role: "admin" }),
    token,
  ]);
  await ops.tokens.revoke({ name: "ci_1" }, { by: "bob" });
  expect((await ops.tokens.list()).tokens.map(({ name }) => name)).toEqual(["all"]);
  await expect(ops.tokens.revoke({ name: "ci_1" })).rejects.toMatchObject({ code: "TOKEN_NOT_FOUND" });
});

it("secrets are unique, and names cannot be reused", async () => {
  const one = await ops.tokens.create({ name: "a", role: "viewer" });
  const other = await ops.tokens.create({ name: "b", role: "viewer" });
  expect(one.secret.slice(-43)).not.toBe(other.secret.slice(-43));
  const again = ops.tokens.create({ name: "a", role: "admin" });
  await expect(again).rejects.toMatchObject({ code: "CONFLICT", field: "name" });
  expect((await ops.tokens.list()).tokens).toMatchObject([{ name: "a", role: "viewer" }, { name: "b" }]);
});

it("the log has both changes and their authors; nothing in Redis has the secret", async () => {
  const { secret } = await ops.tokens.create({ name: "ci", role: "viewer", owners: ["acme"] });
  const texts = [JSON.stringify(await admin.hgetall(KEY)), JSON.stringify(await ops.changes.list())];
  for (const text of texts) expect(text).not.toContain(secret.slice(-43));
  await ops.tokens.revoke({ name: "ci" }, { by: "bob" });
  expect(await admin.exists(KEY)).toBe(0);
  expect((await ops.changes.list()).changes).toMatchObject([
    { kind: "token.revoke", by: "bob", scope: { token: "ci" } },
    { kind: "token.create", by: "ann", scope: { token: "ci" }, after: { role: "viewer", owners: ["acme"] } },
  ]);
});

it("a client that is bound to an owner sees no tokens in the log", async () => {
  const bound = new Client({ connection: redis.url, owner: "acme" });
  await ops.tokens.create({ name: "ci", role: "viewer", owners: ["acme"] });
  expect((await operatorOf(bound).changes.list()).changes).toEqual([]);
  await bound.close();
});

it("an expired token is listed as such; a corrupt one is not, and can be revoked", async () => {
  await expect(ops.tokens.create({ name: "old", role: "viewer", expires: 1 })).rejects.toMatchObject({
    code: "INVALID_OPTION",
    field: "expires",
  });
  await ops.tokens.create({ name: "old", role: "viewer", expires: later() });
  const stored = JSON.parse((await admin.hget(KEY, "old")) ?? "") as object;
  await admin.hset(KEY, {
    old: JSON.stringify({ ...stored, expires: 1 }),
    text: "not JSON",
    // An empty list of owners must not mean all, nor an unknown role any role.
    none: JSON.stringify({ ...stored, name: "none", owners: [] }),
    root: JSON.stringify({ ...stored, name: "root", role: "root" }),
    other: JSON.stringify(stored),
  });
  expect((await ops.tokens.list()).tokens).toMatchObject([{ name: "old", expired: true }]);
  for (const name of ["old", "text", "none", "root", "other"]) await ops.tokens.revoke({ name });
});
