import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FailureLimiter } from "../src/auth.js";
import { ADMIN, type Console, OPERATOR, ownConsole, sessionOf, VIEWER } from "./harness.js";

const TASK = "/api/v1/tasks/q/system/a";
const BODY = JSON.stringify({ type: "t", schedule: { every: "1h" } });

let now = 0;
const limiter = new FailureLimiter({ failures: 3, waiting: 0, now: () => now });
const console_ = ownConsole({ limiter });
beforeEach(async () => {
  await console_.client.put({ id: "a", queue: "q", type: "t", schedule: { every: "1h" } });
});
afterEach(() => {
  now += 120_000;
});

const ask: Console["ask"] = (path, init) => console_.ask(path, init);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const cookie = async (token: string) => ({ cookie: sessionOf(await ask(`/?token=${token}`)) });
const ours = () => ({ origin: console_.url });
const foreign = { origin: "https://evil.example" };

type Headers = Record<string, string>;
const read = (headers: Headers) => ask(TASK, { headers });
const write = (headers: Headers) =>
  ask(TASK, { method: "PUT", body: BODY, headers: { "content-type": "application/json", ...headers } });
const validate = (headers: Headers) =>
  ask("/api/v1/tasks/validate", {
    method: "POST",
    body: '{"schedule":{"every":"1h"}}',
    headers: { "content-type": "application/json", ...headers },
  });

describe("rights to read, write and validate", () => {
  test.each<[string, () => Headers | Promise<Headers>, [number, number, number]]>([
    ["nobody", () => ({}), [401, 401, 401]],
    ["a wrong token", () => bearer("wrong"), [401, 401, 401]],
    ["another scheme", () => ({ authorization: `Basic ${btoa(`x:${ADMIN}`)}` }), [401, 401, 401]],
    ["a token in a cookie", () => ({ cookie: `carillon_console-test=${ADMIN}` }), [401, 401, 401]],
    ["a viewer", () => bearer(VIEWER), [200, 403, 200]],
    ["an operator", () => bearer(OPERATOR), [200, 403, 200]],
    ["an operator's session", async () => ({ ...(await cookie(OPERATOR)), ...ours() }), [200, 403, 200]],
    ["an admin", () => bearer(ADMIN), [200, 200, 200]],
    ["an admin from a page of ours", () => ({ ...bearer(ADMIN), ...ours() }), [200, 200, 200]],
    ["an admin from another site", () => ({ ...bearer(ADMIN), ...foreign }), [200, 403, 403]],
    ["a viewer's session", async () => ({ ...(await cookie(VIEWER)), ...ours() }), [200, 403, 200]],
    ["an admin's session", async () => ({ ...(await cookie(ADMIN)), ...ours() }), [200, 200, 200]],
    ["a session without an Origin", () => cookie(ADMIN), [200, 403, 403]],
    ["a session from another site", async () => ({ ...(await cookie(ADMIN)), ...foreign }), [200, 403, 403]],
    [
      "a session beside a wrong token",
      async () => ({ ...(await cookie(ADMIN)), ...bearer("x") }),
      [401, 401, 401],
    ],
  ])("%s", async (_, headersOf, expected) => {
    const headers = await headersOf();
    const answers = [await read(headers), await write(headers), await validate(headers)];
    expect(answers.map(({ status }) => status)).toEqual(expected);
    for (const answer of answers) {
      if (answer.status === 200) continue;
      const { error, ...rest } = (await answer.json()) as { error: Record<string, unknown> };
      expect(rest).toEqual({});
      expect(error["code"]).toBe(answer.status === 401 ? "UNAUTHORIZED" : "FORBIDDEN");
      expect(error).not.toHaveProperty("key");
    }
  });
});

test("too many wrong tokens are refused with a waiting time; the right one is not", async () => {
  for (let i = 0; i < 3; i++) expect((await read(bearer("wrong"))).status).toBe(401);
  const refused = await read(bearer("wrong"));
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ error: { code: "RATE_LIMITED" } });
  expect((await read(bearer(ADMIN))).status).toBe(200);
});

test.each([TASK, "/queues/api/queues"])("a browser that is not signed in gets JSON from %s", async (path) => {
  const answer = await ask(path, { headers: { accept: "text/html" } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    401,
    "application/json; charset=utf-8",
  ]);
  expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="carillon"');
});

test("a token in the address opens nothing here", async () => {
  for (const path of [TASK, TASK.replace("api", "API")]) {
    const answer = await ask(`${path}?token=${ADMIN}`);
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
  }
  const { status, body } = await console_.api("GET", `/tasks/q/system/a?token=${ADMIN}`);
  expect([status, body.error?.code, body.error?.field]).toEqual([400, "INVALID_OPTION", "token"]);
  expect(JSON.stringify(body)).not.toContain(ADMIN);
});

test("writes are logged with who and what, and without tokens or payloads", async () => {
  const secret = "a-secret-of-a-payload";
  const body = { id: "logged", queue: "q", type: "t", schedule: { every: "1h" }, payload: { secret } };
  await console_.api("POST", "/tasks", body);
  await write({ ...(await cookie(ADMIN)), ...ours() });
  await console_.api("POST", "/tasks", `{"${secret}`);
  await console_.api("POST", "/tasks/validate", { task: { ...body, id: "asked" } });
  await read(bearer(`${ADMIN}x`));
  const lines = console_.log().split("\n");
  const writes = lines.filter((line) => line.includes('"msg":"write"')).map((line) => JSON.parse(line));
  expect(writes.slice(-3)).toMatchObject([
    { role: "admin", by: "bearer", from: "127.0.0.1", method: "POST", path: "/api/v1/tasks", status: 201 },
    { role: "admin", by: "session", method: "PUT", path: TASK, status: 200 },
    { role: "admin", method: "POST", path: "/api/v1/tasks", status: 400 },
  ]);
  expect(lines.filter((line) => line.includes("/tasks/q/system/logged"))).toHaveLength(1);
  expect(lines.filter((line) => line.includes("validate"))).toEqual([]);
  expect(console_.log()).not.toContain(secret);
  expect(console_.log()).not.toContain(ADMIN);
});
