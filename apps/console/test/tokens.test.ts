import { createHmac } from "node:crypto";
import type { AnswerTo, InputOf, OPERATIONS } from "@carillon/ops";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { beforeEach, describe, expect, test } from "vitest";
import { Auth } from "../src/auth.js";
import { ADMIN, OPERATOR, ownConsole, sessionOf, VIEWER } from "./harness.js";

const console_ = ownConsole();
beforeEach(async () => {
  const redis = internalsOf(storeOf(console_.client)).link.client;
  await redis.flushall();
  for (const owner of ["acme", "beta", "gamma"]) {
    await console_.client.put({ id: `of-${owner}`, owner, queue: "q", type: "t", schedule: { every: "1h" } });
  }
});

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const create = async (input: Partial<InputOf<typeof OPERATIONS.tokens.create>>) =>
  (await console_.ops.tokens.create({ name: "ci", role: "operator", ...input })).secret;
const call = (secret: string, method: string, path: string, body?: unknown) =>
  console_.api(method, path, body, bearer(secret));
const codeOf = async (secret: string, method: string, path: string, body?: unknown) => {
  const { status, body: answer } = await call(secret, method, path, body);
  return [status, answer.error?.code];
};
const expire = async (name: string) => {
  const { link, keys } = internalsOf(storeOf(console_.client));
  const stored = JSON.parse((await link.client.hget(keys.tokens, name)) ?? "") as object;
  await link.client.hset(keys.tokens, name, JSON.stringify({ ...stored, expires: Date.now() - 1 }));
};

describe("a named token", () => {
  test("is created, listed and revoked by an admin, and has the rights of its role", async () => {
    const made = await console_.api("POST", "/tokens", { name: "ci", role: "operator", owners: ["acme"] });
    expect(made).toMatchObject({ status: 201, body: { token: { name: "ci", createdBy: "admin" } } });
    const secret = String(made.body["secret"]);
    expect((await call(secret, "POST", "/tasks/q/acme/of-acme/pause")).status).toBe(200);
    expect(await codeOf(secret, "DELETE", "/tasks/q/acme/of-acme")).toEqual([403, "FORBIDDEN"]);
    const { body } = await console_.api("GET", "/tokens");
    expect(body).toMatchObject({
      tokens: [{ name: "ci", role: "operator", owners: ["acme"], expired: false }],
    });
    expect(JSON.stringify(body)).not.toContain(secret.slice(-43));
    expect(console_.log()).not.toContain(secret.slice(-43));
    expect((await console_.api("DELETE", "/tokens/ci")).status).toBe(204);
    expect(await codeOf(secret, "GET", "/tasks")).toEqual([401, "UNAUTHORIZED"]);
    expect((await console_.api("DELETE", "/tokens/ci")).body.error?.code).toBe("TOKEN_NOT_FOUND");
  });

  test("is refused with a code of its own once expired, by header and by form", async () => {
    const secret = await create({ expires: Date.now() + 3_600_000 });
    expect((await call(secret, "GET", "/tasks")).status).toBe(200);
    await expire("ci");
    const { status, body } = await call(secret, "GET", "/tasks");
    expect([status, body.error?.code]).toEqual([401, "TOKEN_EXPIRED"]);
    const page = await console_.ask(`/?token=${secret}`, { headers: { accept: "text/html" } });
    expect([page.status, page.headers.getSetCookie()]).toEqual([401, []]);
    expect(await page.text()).toMatch(/role="alert"[^>]*>the token ci expired at 20/);
  });

  test("opens nothing with a wrong secret, or another's", async () => {
    const [one, other] = [await create({ name: "one" }), await create({ name: "other" })];
    const swapped = `carillon_one_${other.slice(-43)}`;
    for (const wrong of [
      swapped,
      `${one}x`,
      one.slice(0, -1),
      "carillon_one_",
      "carillon_",
      one.toUpperCase(),
    ]) {
      expect(await codeOf(wrong, "GET", "/tasks")).toEqual([401, "UNAUTHORIZED"]);
    }
  });

  test("signs in; its session ends if it is revoked, expires or is replaced", async () => {
    const ends: (() => Promise<unknown>)[] = [
      () => console_.ops.tokens.revoke({ name: "a.b_c" }),
      () => expire("a.b_c"),
      async () => {
        await console_.ops.tokens.revoke({ name: "a.b_c" });
        await create({ name: "a.b_c", role: "admin" });
      },
      () => console_.ask("/logout", { method: "POST", headers: { cookie } }),
    ];
    let cookie = "";
    for (const end of ends) {
      const secret = await create({ name: "a.b_c", role: "admin" });
      cookie = sessionOf(await console_.ask(`/?token=${secret}`));
      expect(cookie).not.toContain(secret.slice(-43));
      const read = async () => (await console_.ask("/api/v1/tasks", { headers: { cookie } })).status;
      expect(await read()).toBe(200);
      await end();
      expect(await read()).toBe(401);
      await console_.ops.tokens.revoke({ name: "a.b_c" }).catch(() => {});
    }
  });

  test("the stored hash opens no session", async () => {
    await create({ name: "ci", role: "admin" });
    const store = storeOf(console_.client);
    const { sha256 = "" } = (await store.tokens.get("ci")) ?? {};
    const claims = `ci.${(Date.now() + 3_600_000).toString(36)}.nonce`;
    for (const key of [sha256, Buffer.from(sha256, "hex"), ""]) {
      const forged = `${claims}.${createHmac("sha256", key).update(claims).digest("base64url")}`;
      const cookie = `carillon_console-test=${forged}`;
      expect((await console_.ask("/api/v1/tasks", { headers: { cookie } })).status).toBe(401);
    }
    const auth = (token: string) =>
      new Auth({ tokens: { admin: [token] }, namespace: "console-test", store });
    const credential = await auth(ADMIN).credential(await create({ name: "own", role: "admin" }));
    const session = auth(ADMIN).openSession(credential!);
    expect((await auth(ADMIN).session(session))?.credential.name).toBe("own");
    expect(await auth("another-admin-token").session(session)).toBeUndefined();
  });
});

describe("the author of a change", () => {
  const BOARD = "/queues/api/queues/q";
  test("is the token's name, on the API and on the board", async () => {
    const secret = await create({ name: "deploy-bot", role: "admin" });
    await console_.board.refresh();
    await call(secret, "PUT", "/tasks/q/acme/new", { type: "t", schedule: { every: "1h" } });
    await call(secret, "POST", "/tasks/q/acme/of-acme/pause", {});
    await call(secret, "POST", "/tasks/q/beta/of-beta/trigger", {});
    await call(VIEWER, "POST", "/tasks/q/beta/of-beta/trigger", {});
    await console_.ask(`${BOARD}/pause`, { method: "PUT", headers: bearer(secret) });
    await console_.ask(`${BOARD}/job-schedulers/gamma%2Fof-gamma/remove`, {
      method: "PUT",
      body: "{}",
      headers: { ...bearer(secret), "content-type": "application/json" },
    });
    await call(OPERATOR, "POST", "/tasks/q/acme/of-acme/resume", {});
    const { changes } = await console_.ops.changes.list({ limit: 6 });
    expect(changes.map(({ kind, by }) => [kind, by])).toEqual([
      ["resume", "operator"],
      ["delete", "deploy-bot"],
      ["queue.pause", "deploy-bot"],
      ["trigger", "deploy-bot"],
      ["pause", "deploy-bot"],
      ["put", "deploy-bot"],
    ]);
    expect((await console_.client.get({ owner: "acme", id: "of-acme" })).updatedBy).toBeUndefined();
  });
});

describe("a token that is bound to owners", () => {
  test("reads and changes only their tasks", async () => {
    const secret = await create({ role: "admin", owners: ["acme"] });
    const { body } = await call(secret, "GET", "/tasks");
    expect(body["tasks"]).toMatchObject([{ owner: "acme", id: "of-acme" }]);
    const task = { id: "new", queue: "q", type: "t", schedule: { every: "1h" } };
    expect((await call(secret, "GET", "/openapi.json")).status).toBe(200);
    expect((await call(secret, "POST", "/tasks", task)).body).toMatchObject({ task: { owner: "acme" } });
    for (const [method, path, given] of [
      ["GET", "/tasks?owner=beta", undefined],
      ["GET", "/tasks?owner=acme&owner=beta", undefined],
      ["GET", "/tasks/q/beta/of-beta", undefined],
      ["DELETE", "/tasks/q/beta/of-beta?owner=acme", undefined],
      ["POST", "/tasks", { ...task, owner: "beta" }],
      ["POST", "/tasks?owner=acme", { ...task, owner: "beta" }],
      ["PUT", "/tasks/q/beta/new", task],
      ["POST", "/tasks/pause", { owner: "beta" }],
      ["POST", "/tasks/delete?owner=acme", { owner: "beta" }],
      ["POST", "/freezes", { owner: "beta" }],
      ["GET", "/runs/journal?task=of-beta&owner=beta", undefined],
      ["GET", "/changes?task=of-beta&owner=beta", undefined],
      ["POST", "/tasks/validate", { task: { ...task, owner: "beta" } }],
      ["GET", "/queues", undefined],
    ] as const) {
      expect([path, ...(await codeOf(secret, method, path, given))]).toEqual([path, 403, "FORBIDDEN"]);
    }
    expect((await call(secret, "POST", "/tasks/delete", { queue: "q" })).body).toMatchObject({ count: 2 });
    const frozen = await call(secret, "POST", "/freezes", { queue: "q" });
    expect(frozen.body).toMatchObject({ owner: "acme" });
    const left = (await console_.client.list()).tasks.map(({ id }) => id);
    expect(left).toEqual(["of-beta", "of-gamma"]);
  });

  test("finds no run, backfill or freeze of other owners by id", async () => {
    const secret = await create({ role: "admin", owners: ["acme"] });
    const ref = { owner: "beta", id: "of-beta" };
    const triggered = await console_.client.trigger(ref);
    const run = encodeURIComponent(triggered.outcome === "enqueued" ? triggered.run : "");
    const freeze = await console_.ops.freezes.put({ owner: "beta" });
    for (const [method, path] of [
      ["GET", `/runs/${run}`],
      ["POST", `/runs/${run}/cancel`],
      ["GET", `/runs/${run}/items`],
      ["DELETE", `/freezes/${freeze.id}`],
    ] as const) {
      expect([path, (await call(secret, method, path)).status]).toEqual([path, 404]);
    }
    expect((await call(secret, "GET", "/freezes")).body).toEqual({ freezes: [] });
    const { changes } = (await call(secret, "GET", "/changes")).body as AnswerTo<"changes.list">;
    expect(new Set(changes.map(({ scope }) => scope.owner))).toEqual(new Set(["acme"]));
  });

  test("receives no events of other owners, and does not count their load", async () => {
    const secret = await create({ role: "viewer", owners: ["acme"] });
    expect((await call(secret, "GET", "/load")).body).toMatchObject({ tasks: 1, total: 24 });
    expect(await codeOf(secret, "GET", "/load?owner=beta")).toEqual([403, "FORBIDDEN"]);
    const leaves = new AbortController();
    const heard = async (token: string) => {
      const stream = await console_.ask("/api/v1/events", { headers: bearer(token), signal: leaves.signal });
      const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = (await reader.read()).value ?? "";
      return async (last: string) => {
        while (!text.includes(last)) text += (await reader.read()).value ?? last;
        return text;
      };
    };
    const [all, own] = [await heard(ADMIN), await heard(secret)];
    // A change, a run and a skip of other owners, then one of its own.
    const ref = { owner: "beta", id: "of-beta" };
    await console_.client.pause(ref, { note: "secret of beta" });
    await console_.client.resume(ref);
    await console_.client.trigger(ref);
    await console_.client.trigger(ref);
    await all('"beta"');
    await console_.client.pause({ owner: "acme", id: "of-acme" });
    expect(await own('"acme"')).not.toMatch(/beta|skipped|run-/);
    expect(await all('"acme"')).toMatch(/"change":"pause".*"beta"/);
    leaves.abort();
  });

  test("names one of several owners if the path does not", async () => {
    const secret = await create({ role: "admin", owners: ["acme", "beta"] });
    const { status, body } = await call(secret, "GET", "/tasks");
    expect([status, body.error?.field]).toEqual([400, "owner"]);
    expect((await call(secret, "GET", "/me")).body["owners"]).toEqual(["acme", "beta"]);
    for (const owner of ["acme", "beta"]) {
      const listed = await call(secret, "GET", `/tasks?owner=${owner}`);
      expect(listed.body["tasks"]).toMatchObject([{ id: `of-${owner}` }]);
      for (const path of [
        "/status",
        "/runs/journal",
        "/runs/stats",
        "/changes",
        "/upcoming",
        "/freezes",
        "/runs/a@b.c",
      ]) {
        const answer = await call(secret, "GET", `${path}?owner=${owner}`);
        expect([path, answer.status]).toEqual([path, path.endsWith("@b.c") ? 404 : 200]);
        expect(JSON.stringify(answer.body)).not.toContain("of-gamma");
      }
      expect((await call(secret, "GET", `/tasks/q/${owner}/of-${owner}`)).status).toBe(200);
    }
    expect(await codeOf(secret, "GET", "/tasks?owner=gamma")).toEqual([403, "FORBIDDEN"]);
  });
});

test("a token that is revoked ends its stream of events", async () => {
  const secret = await create({ role: "viewer", name: "leaver" });
  const stream = await console_.ask("/api/v1/events", { headers: bearer(secret) });
  const reader = stream.body!.getReader();
  await reader.read();
  expect((await call(ADMIN, "DELETE", "/tokens/leaver")).status).toBe(204);
  // Ends by itself: within a beat.
  while (!(await reader.read()).done);
});
