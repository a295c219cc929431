import { request } from "node:http";
import { connect } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { FailureLimiter } from "../src/auth.js";
import {
  ADMIN,
  type Answer,
  type Console,
  OPERATOR,
  ownConsole,
  sessionOf,
  startConsole,
  VIEWER,
} from "./harness.js";

const HTML = { accept: "text/html" };
const JOBS = "/queues/api/queues";
const PAUSE = "/queues/api/queues/pause";

const own = ownRedis({ appendonly: true });
let now = 0;
/** Ends the delays of wrong tokens. */
const endDelays: (() => void)[] = [];
const FAILURES = 3;
const WAITING = 5;
const sleep = () => new Promise<void>((resolve) => void endDelays.push(resolve));
const limiter = new FailureLimiter({ failures: FAILURES, waiting: WAITING, now: () => now, sleep });
const console_ = ownConsole({ limiter }, own);
beforeAll(() => console_.board.refresh());
afterEach(() => {
  now += 120_000;
});

const ask: Console["ask"] = (path, init) => console_.ask(path, init);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function signIn(token: string): Promise<string> {
  return sessionOf(await ask(`/?token=${token}`, { headers: HTML }));
}

function postLogin(fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Response> {
  return ask("/login", {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { ...HTML, ...headers },
  });
}

describe("without a token", () => {
  test.each([
    ["GET", "/"],
    ["GET", "/queues/"],
    ["GET", "/queues/static/js/main.js"],
    ["GET", JOBS],
    ["GET", "/queues/api/redis/stats"],
    ["GET", "/queues/api/job-schedulers"],
    ["PUT", PAUSE],
    ["POST", "/queues/api/queues/q/add"],
    ["DELETE", "/anything"],
  ])("%s %s is closed", async (method, path) => {
    const answer = await ask(path, { method });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="carillon"');
    expect(await answer.json()).toMatchObject({
      error: { code: "UNAUTHORIZED", remedy: expect.any(String) },
    });
  });

  test("a browser gets a form that leads back to where it wanted to go", async () => {
    const answer = await ask('/queues/queue/q?status="><script>', { headers: HTML });
    expect(answer.status).toBe(401);
    const page = await answer.text();
    expect(page).toContain('<form method="post" action="/login">');
    expect(page).toContain("/queues/queue/q?status=");
    expect(page).not.toContain("<script>");
  });

  test("the board's page asks to be reloaded after its session ended", async () => {
    const remedy = async (path: string) => ((await (await ask(path)).json()) as Answer).error?.remedy;
    expect(await remedy(JOBS)).toMatch(/^Load the page again/);
    expect(await remedy("/api/v1/tasks")).toMatch(/^Open the console in a browser/);
  });

  test("health, readiness and the logo are open", async () => {
    const answers = await Promise.all(["/health", "/ready", "/carillon.svg"].map((path) => ask(path)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await answers[0]?.json()).toEqual({ status: "ok" });
    expect(await answers[1]?.json()).toEqual({ status: "ready" });
  });
});

describe("signing in", () => {
  test("by link sets a cookie without the token, and removes the token from the address", async () => {
    const answer = await ask(`/queues/queue/q?status=failed&token=${ADMIN}`, { headers: HTML });
    expect(answer.status).toBe(303);
    expect(answer.headers.get("location")).toBe("/queues/queue/q?status=failed");
    const [cookie = ""] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/^carillon_console-test=admin\./);
    expect(cookie).toMatch(/; HttpOnly/);
    expect(cookie).toMatch(/; SameSite=Strict/);
    expect(cookie).toMatch(/; Max-Age=43200;/);
    expect(cookie).not.toMatch(/; Secure/);
    expect(cookie).not.toContain(ADMIN);
    // Cookies of other programs on this host come along.
    const cookies = `a=b; ${sessionOf(answer)}; c=d`;
    const page = await ask("/queues/", { headers: { ...HTML, cookie: cookies } });
    expect(page.status).toBe(200);
    expect(await page.text()).toContain("<title>Carillon</title>");
  });

  test("behind TLS the cookie is sent over TLS only", async () => {
    const behind = async (proto: string) => {
      const answer = await ask(`/?token=${ADMIN}`, { headers: { "x-forwarded-proto": proto } });
      return answer.headers.getSetCookie()[0];
    };
    expect(await behind("https")).toMatch(/; Secure/);
    // With several proxies, the first entry is the browser's protocol.
    expect(await behind("https, http")).toMatch(/; Secure/);
    expect(await behind("http, https")).not.toMatch(/; Secure/);
  });

  test("by form leads back to the requested page", async () => {
    const answer = await postLogin({ token: VIEWER, next: "/queues/job-schedulers?queueName=q" });
    expect(answer.status).toBe(303);
    expect(answer.headers.get("location")).toBe("/queues/job-schedulers?queueName=q");
    expect((await ask(JOBS, { headers: { cookie: sessionOf(answer) } })).status).toBe(200);
  });

  test.each([
    "//elsewhere.example",
    "/\\elsewhere.example",
    "https://elsewhere.example/",
    "elsewhere",
    "/a\nb",
  ])("never leads to %j", async (next) => {
    expect((await postLogin({ token: ADMIN, next })).headers.get("location")).toBe("/");
  });

  test("leads to the start page from the form itself", async () => {
    const page = await (await ask("/login", { headers: HTML })).text();
    expect(page).toContain('name="next" value="/"');
    for (const next of ["/login", "/login?a", "/logout"]) {
      expect((await postLogin({ token: ADMIN, next })).headers.get("location")).toBe("/");
    }
    expect((await postLogin({ token: ADMIN, next: "/login-page" })).headers.get("location")).toBe(
      "/login-page",
    );
  });

  test("by link never leads to another site", async () => {
    const answer = await ask(`//elsewhere.example/?token=${ADMIN}`);
    expect(answer.headers.get("location")).toMatch(/^\/(?!\/)/);
  });

  test.each(["//", "//?a", "/%", "/%ff/..//x?token", "/?token=%ff"])("%s does no harm", async (path) => {
    expect((await ask(path)).status).toBe(401);
  });

  test("with a wrong token shows the form again, without a cookie", async () => {
    for (const answer of [
      await postLogin({ token: "wrong" }),
      await ask("/?token=wrong", { headers: HTML }),
    ]) {
      expect(answer.status).toBe(401);
      expect(answer.headers.getSetCookie()).toEqual([]);
      const page = await answer.text();
      // The field has the focus at once, so that a screen reader announces the problem.
      expect(page).toContain('<p role="alert" id="problem">This token is not valid.</p>');
      expect(page).toMatch(
        /<input id="token"[^>]* autofocus [^>]*aria-invalid="true" aria-describedby="problem">/,
      );
    }
  });

  test("by header works for programs; a wrong token opens nothing, even with a session", async () => {
    expect((await ask(JOBS, { headers: bearer(ADMIN) })).status).toBe(200);
    expect((await ask(JOBS, { headers: { authorization: `bearer ${ADMIN}` } })).status).toBe(200);
    const cookie = await signIn(ADMIN);
    expect((await ask(JOBS, { headers: { ...bearer("wrong"), cookie } })).status).toBe(401);
  });

  test("accepts only a token and a destination without a session", async () => {
    expect((await postLogin({ token: "x".repeat(5_000) })).status).toBe(413);
  });

  test("no token is ever logged", async () => {
    await ask(`/?token=${ADMIN}`);
    await ask(`/?token=${VIEWER}x`);
    await console_.admin("PUT", `${PAUSE}?token=${ADMIN}`);
    expect(console_.log()).toContain("signed in");
    expect(console_.log()).toContain('"from":"127.0.0.1","msg":"sign-in failed"');
    expect(console_.log()).toContain(PAUSE);
    expect(console_.log()).not.toContain(ADMIN);
    expect(console_.log()).not.toContain(VIEWER);
  });
});

describe("signing out", () => {
  const signOut = (cookie: string, headers: Record<string, string> = HTML) =>
    ask("/logout", { method: "POST", headers: { ...headers, cookie } });
  const CLEARED = /^carillon_console-test=;.*Expires=Thu, 01 Jan 1970/;

  test("ends the session on the server, on every console of the namespace, and no other session", async () => {
    const replica = await startConsole({}, console_.redis);
    await replica.board.refresh();
    const [cookie, other] = [await signIn(ADMIN), await signIn(ADMIN)];
    const answer = await signOut(cookie);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
    expect(answer.headers.getSetCookie()[0]).toMatch(CLEARED);
    for (const path of ["/", "/queues/", JOBS, "/api/v1/tasks"]) {
      for (const at of [console_, replica]) {
        expect([path, (await at.ask(path, { headers: { cookie } })).status]).toEqual([path, 401]);
      }
    }
    const write = { method: "PUT", headers: { cookie, origin: console_.url } };
    expect((await ask(PAUSE, write)).status).toBe(401);
    expect((await replica.ask(JOBS, { headers: { cookie: other } })).status).toBe(200);
    await replica.stop();
  });

  test("is remembered for as long as a session lasts, and no longer", async () => {
    const redis = connect(console_.redis.url, "safe");
    await eventually(() => redis.status === "ready");
    const ends = () => redis.keys("*:ended:*");
    const before = await ends();
    const cookie = await signIn(ADMIN);
    await signOut(cookie);
    await signOut(cookie);
    const [key = "", ...rest] = (await ends()).filter((one) => !before.includes(one));
    expect(rest).toEqual([]);
    const hours = (await redis.pttl(key)) / 3_600_000;
    expect(hours).toBeGreaterThan(11);
    expect(hours).toBeLessThanOrEqual(12);
    redis.disconnect();
  });

  test("takes a press of the button: a link only leads to it", async () => {
    const cookie = await signIn(ADMIN);
    const linked = await ask("/logout", { headers: { ...HTML, cookie } });
    expect([linked.status, await linked.text()]).toEqual([200, expect.stringContaining('method="post"')]);
    expect((await ask(JOBS, { headers: { cookie } })).status).toBe(200);
  });

  test("without a session does nothing", async () => {
    expect((await signOut("")).headers.getSetCookie()).toEqual([]);
    expect((await signOut(`carillon_console-test=admin.zzzzzzzz.x.y`)).headers.getSetCookie()).toEqual([]);
  });

  test("ends the session in this browser if Redis fails, and reports that", async () => {
    const redis = connect(console_.redis.url, "safe");
    await eventually(() => redis.status === "ready");
    const cookie = await signIn(ADMIN);
    await redis.config("SET", "maxmemory", "1");
    const answers = [await signOut(cookie), await signOut(cookie, {})];
    await redis.config("SET", "maxmemory", "0");
    redis.disconnect();
    expect(answers.map(({ status }) => status)).toEqual([503, 503]);
    for (const answer of answers) expect(answer.headers.getSetCookie()[0]).toMatch(CLEARED);
    expect(await answers[0]?.text()).toMatch(/role="alert"[^>]*>Signed out in this browser only/);
    expect(await answers[1]?.json()).toMatchObject({ error: { code: "REDIS_OUT_OF_MEMORY" } });
    expect((await ask(JOBS, { headers: { cookie } })).status).toBe(200);
  });
});

describe("wrong tokens", () => {
  const FROM_ELSEWHERE = { ...HTML, "sec-fetch-dest": "document", "sec-fetch-site": "cross-site" };

  /**
   * Sends wrong tokens until the address has used up its free attempts and its places to wait. Returns the answers that
   * wait.
   */
  async function storm(send: () => Promise<Response>): Promise<Promise<Response>[]> {
    for (let i = 0; i < FAILURES; i++) expect((await send()).status).toBe(401);
    const waiting = Array.from({ length: WAITING }, send);
    await eventually(() => endDelays.length === WAITING);
    return waiting;
  }

  async function calm(waiting: Promise<Response>[]): Promise<void> {
    for (const end of endDelays.splice(0)) end();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(401);
  }

  test.each([
    ["by form", () => postLogin({ token: "wrong" })],
    ["by link", () => ask("/?token=wrong")],
    ["by header, as a client with yesterday's token does", () => ask(JOBS, { headers: bearer("old") })],
  ])("a right token is accepted at once during a flood of wrong ones: %s", async (_, send) => {
    const waiting = await storm(send);
    expect((await ask(JOBS, { headers: bearer(ADMIN) })).status).toBe(200);
    expect((await postLogin({ token: VIEWER })).status).toBe(303);
    const cookie = await signIn(OPERATOR);
    expect((await ask(JOBS, { headers: { cookie } })).status).toBe(200);
    await calm(waiting);
  });

  test("are delayed after a few, and refused while too many wait", async () => {
    const send = () => ask(JOBS, { headers: bearer("wrong") });
    const waiting = await storm(send);
    const refused = await Promise.all(Array.from({ length: 50 }, send));
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
    expect(refused[0]?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(endDelays).toHaveLength(WAITING);
    await calm(waiting);
    now += 120_000;
    expect((await send()).status).toBe(401);
  });

  test("from navigations of another site do not count", async () => {
    for (let i = 0; i < 4 * FAILURES; i++) {
      expect((await ask("/?token=wrong", { headers: FROM_ELSEWHERE })).status).toBe(401);
    }
    for (let i = 0; i < FAILURES; i++) {
      expect((await ask(JOBS, { headers: bearer("wrong") })).status).toBe(401);
    }
    expect(endDelays).toEqual([]);
  });

  test("a link on another site only fills in the form", async () => {
    const answer = await ask(`/queues/queue/q?status=failed&token=${ADMIN}"`, { headers: FROM_ELSEWHERE });
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([401, []]);
    const page = await answer.text();
    expect(page).toMatch(new RegExp(`<input id="token"[^>]* value="${ADMIN}&#34;"`));
    expect(page).toContain('name="next" value="/queues/queue/q?status=failed"');
  });

  test("in subresources of another site are ignored", async () => {
    for (const dest of ["image", "iframe", "script", "empty"]) {
      const answer = await ask("/?token=wrong", { headers: { "sec-fetch-dest": dest } });
      expect([dest, answer.status, answer.headers.getSetCookie()]).toEqual([dest, 401, []]);
    }
    for (const site of ["none", "same-origin"]) {
      const headers = { "sec-fetch-dest": "document", "sec-fetch-site": site };
      expect((await ask(`/?token=${ADMIN}`, { headers })).status).toBe(303);
    }
  });

  test("count for the client's address behind the trusted proxies", async () => {
    const limiter = new FailureLimiter({ failures: 1, waiting: 0, now: () => now });
    const send = async (to: Console, forwarded: string) => {
      const headers = { ...bearer("wrong"), "x-forwarded-for": forwarded };
      return (await to.ask(JOBS, { headers })).status;
    };
    const behind = await startConsole({ limiter, trustedProxies: 1 }, console_.redis);
    // A client can forge all entries but the last, which the proxy adds.
    expect(await send(behind, "10.0.0.1")).toBe(401);
    expect(await send(behind, "10.9.9.9, 10.0.0.1")).toBe(429);
    expect(await send(behind, "10.0.0.1, 10.0.0.2")).toBe(401);
    expect(behind.log()).toContain('"from":"10.0.0.2","msg":"sign-in failed"');
    await behind.stop();
    const direct = await startConsole({ limiter }, console_.redis);
    expect([await send(direct, "10.0.0.3"), await send(direct, "10.0.0.4")]).toEqual([401, 429]);
    await direct.stop();
  });
});

describe("a viewer", () => {
  test("sees a read-only board, while an operator and an admin do not", async () => {
    await console_.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
    await console_.board.refresh();
    const modes = await Promise.all(
      [VIEWER, OPERATOR, ADMIN].map(async (token) => {
        const { queues } = (await (await ask(JOBS, { headers: bearer(token) })).json()) as {
          queues: Array<{ readOnlyMode: boolean }>;
        };
        return queues.map(({ readOnlyMode }) => readOnlyMode);
      }),
    );
    expect(modes).toEqual([[true], [false], [false]]);
    const labels = await Promise.all(
      [VIEWER, OPERATOR, ADMIN].map(async (token) => {
        const page = await (await ask("/queues/", { headers: bearer(token) })).text();
        return /"environment":\{"label":"([^"]*)"/.exec(page)?.[1];
      }),
    );
    expect(labels).toEqual(["read-only", "operator", undefined]);
  });
});

describe("an operator", () => {
  const a = "/queues/api/queues/q/job-schedulers/system%2Fa";
  const send = (method: string, path: string, token = OPERATOR, body: object = {}) =>
    ask(path, {
      method,
      headers: { ...bearer(token), "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  test("defines, edits and removes nothing; the refusal names the role that may", async () => {
    for (const [method, path] of [
      ["PUT", `${a}/remove`],
      ["POST", "/api/v1/tasks"],
    ] as const) {
      const answer = await send(method, path);
      expect([path, answer.status]).toEqual([path, 403]);
      expect(await answer.json()).toMatchObject({
        error: { code: "FORBIDDEN", remedy: "Sign in with the token of an admin." },
      });
    }
    const own = await send("POST", "/api/v1/tasks/q/system/a/trigger", OPERATOR, { payload: { url: "x" } });
    expect([own.status, await own.json()]).toMatchObject([403, { error: { field: "payload" } }]);
    const { error } = (await (await send("PUT", `${a}/run`, VIEWER)).json()) as { error: object };
    expect(error).toMatchObject({ remedy: "Sign in with the token of an operator or an admin." });
  });

  test("needs a token of its own", async () => {
    const alone = await startConsole({ auth: { admin: [ADMIN] } }, console_.redis);
    const answer = await alone.ask(JOBS, { headers: bearer(OPERATOR) });
    expect(answer.status).toBe(401);
    await alone.stop();
  });
});

describe("a write from another site", () => {
  test.each([
    "https://evil.example",
    "null",
    "file://",
    "http://127.0.0.1:1",
    "http://127.0.0.1.evil.example",
  ])("is refused: Origin %s", async (origin) => {
    const cookie = await signIn(ADMIN);
    for (const headers of [
      { cookie, origin },
      { ...bearer(ADMIN), origin },
    ]) {
      const answer = await ask(PAUSE, { method: "PUT", headers });
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({ error: { code: "FORBIDDEN", field: "Origin" } });
    }
    expect((await postLogin({ token: ADMIN }, { origin })).status).toBe(403);
  });

  test("the host name of the proxy counts as ours", async () => {
    const headers = {
      ...bearer(ADMIN),
      origin: "https://console.example",
      "x-forwarded-host": "console.example",
    };
    expect((await ask(PAUSE, { method: "PUT", headers })).status).toBe(200);
  });

  test.each(["console.example:443", "Console.Example, inner.example"])(
    "the proxy may say the name with its port, or before others: %s",
    async (name) => {
      const headers = { cookie: await signIn(ADMIN), origin: "https://console.example" };
      const behind = (own: string) =>
        ask(PAUSE, { method: "PUT", headers: { ...headers, "x-forwarded-host": own } });
      expect((await behind(name)).status).toBe(200);
      for (const other of ["console.example:80", "inner.example, console.example", "a.console.example"]) {
        expect((await behind(other)).status).toBe(403);
      }
    },
  );
});

test("a write is logged even if its sender leaves before the answer", async () => {
  await console_.client.put({ id: "left", type: "t", queue: "q", schedule: { every: "1h" } });
  const redis = connect(console_.redis.url, "safe");
  await eventually(() => redis.status === "ready");
  await redis.call("CLIENT", "PAUSE", "20000", "WRITE");
  const path = "/api/v1/tasks/q/system/left";
  const asked = request(console_.url + path, { method: "DELETE", headers: bearer(ADMIN) }).end();
  asked.on("error", () => {});
  await eventually(async () => /flags=b/.test(String(await redis.call("CLIENT", "LIST"))));
  asked.destroy();
  const line = await eventually(
    () =>
      console_
        .log()
        .split("\n")
        .find((one) => one.includes(path)) ?? false,
  );
  await redis.call("CLIENT", "UNPAUSE");
  redis.disconnect();
  expect(JSON.parse(line)).toMatchObject({ msg: "write", role: "admin", method: "DELETE", path, left: true });
  expect(JSON.parse(line)).not.toHaveProperty("status");
  await eventually(async () =>
    (await console_.client.list({ queue: "q" })).tasks.every(({ id }) => id !== "left"),
  );
});

test("files are cached for an hour, missing ones are not", async () => {
  const page = await (await ask("/queues/", { headers: bearer(ADMIN) })).text();
  const script = /src="(static\/js\/main[^"]*)"/.exec(page)?.[1];
  const kept = async (path: string, headers: Record<string, string>) => {
    const answer = await ask(path, { headers });
    return [answer.status, answer.headers.get("cache-control")];
  };
  const hour = "private, max-age=3600";
  expect(await kept(`/queues/${script}`, bearer(ADMIN))).toEqual([200, hour]);
  expect(await kept("/carillon.svg", {})).toEqual([200, hour]);
  // The session has expired, or another console behind the same proxy has another version.
  expect(await kept(`/queues/${script}`, {})).toEqual([401, "no-store"]);
  expect(await kept("/queues/static/js/main.of-tomorrow.js", bearer(ADMIN))).toEqual([404, "no-store"]);
});

test("every answer carries the security headers", async () => {
  for (const [path, headers] of [
    ["/", HTML],
    ["/health", {}],
    ["/queues/", bearer(ADMIN)],
    [JOBS, bearer(ADMIN)],
    ["/nothing", bearer(ADMIN)],
  ] as const) {
    const answer = await ask(path, { headers });
    const get = (name: string) => answer.headers.get(name);
    expect(get("content-security-policy")).toMatch(
      /default-src 'none'; script-src 'self';.* base-uri 'self'; form-action 'self'; frame-ancestors 'none'/,
    );
    expect([get("x-frame-options"), get("x-content-type-options")]).toEqual(["DENY", "nosniff"]);
    expect([get("referrer-policy"), get("cache-control")]).toEqual(["same-origin", "no-store"]);
    expect(get("cross-origin-opener-policy")).toBe("same-origin");
    expect(get("x-powered-by")).toBeNull();
  }
});

test("the pages are one document behind the sign-in, with open files and a CSP without unsafe-inline", async () => {
  for (const path of ["/", "/tasks", "/tasks/q/acme/a", "/runs/a@b"]) {
    const answer = await ask(path, { headers: { ...HTML, ...bearer(VIEWER) } });
    expect([path, answer.status]).toEqual([path, 200]);
    expect(answer.headers.get("content-security-policy")).not.toContain("unsafe");
    expect(await answer.text()).toContain('<base href="/" />');
  }
  const page = await (await ask("/", { headers: bearer(VIEWER) })).text();
  const script = /src="\.(\/assets\/[^"]+)"/.exec(page)?.[1] ?? "";
  const file = await ask(script, {});
  expect([file.status, file.headers.get("content-type")]).toEqual([200, "text/javascript; charset=utf-8"]);
  expect(file.headers.get("cache-control")).toMatch(/immutable/);
  expect((await ask("/assets/of-tomorrow.js")).status).toBe(401);
  const board = await ask("/queues/", { headers: bearer(ADMIN) });
  expect(board.headers.get("content-security-policy")).toContain("style-src 'self' 'unsafe-inline'");
  expect(await (await ask("/tasks", { headers: HTML })).text()).not.toMatch(/<style|style=/);
});

test("the board's page loads nothing from elsewhere", async () => {
  const page = await (await ask("/queues/", { headers: bearer(ADMIN) })).text();
  expect(page).toContain('<base href="/queues/"');
  expect([...page.matchAll(/(?:src|href)="(https?:[^"]*)"/g)].map(([, url]) => url)).toEqual([]);
});

test("an unknown address is a coded 404 for programs, and a page for browsers", async () => {
  const { status, body } = await console_.admin("GET", "/nothing");
  expect([status, body.error?.code]).toEqual([404, "INVALID_OPTION"]);
  for (const [path, type] of [
    ["/nothing", "text/html"],
    ["/tasks/a", "text/html"],
    ["/api/v1/nothing", "application/json"],
    ["/assets/of-tomorrow.js", "text/html"],
  ] as const) {
    const answer = await ask(path, { headers: { ...HTML, ...bearer(ADMIN) } });
    expect([path, answer.status]).toEqual([path, 404]);
    expect([path, answer.headers.get("content-type")]).toEqual([path, expect.stringContaining(type)]);
  }
  expect((await ask("/nothing", { headers: HTML })).status).toBe(401);
});
