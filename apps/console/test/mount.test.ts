import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { serve } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import {
  type Console,
  type ConsoleOptions,
  createConsole,
  fastifyConsole,
  type Person,
} from "../src/index.js";
import { SILENT } from "./harness.js";

const TOKEN = "the-token-of-an-admin";
const MOUNT = "/ops/carillon";

const redis = sharedRedis();
let client: Client;
/** Clean-up steps, in the order in which they run. */
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  client = new Client({ connection: redis.url });
  for (const owner of ["acme", "beta"]) {
    await client.put({ id: "a", owner, type: "t", queue: "q", schedule: { every: "1h" } });
  }
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0)) await end();
});
afterAll(async () => {
  await client.close();
});

function create(options: Partial<ConsoleOptions> = {}): Console {
  const made = createConsole({ client, auth: { admin: [TOKEN] }, logger: SILENT, ...options });
  ends.push(() => made.close());
  return made;
}

async function listen(server: Server): Promise<string> {
  if (!server.listening) await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  ends.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const README = readFileSync(`${ROOT}README.md`, "utf8");

/** Runs the line of the README that mounts a console in that server. */
async function mounted(server: string, scope: { ops: Console; app?: unknown }, at: string): Promise<unknown> {
  const [, line = ""] = new RegExp(`^\\| ${server} \\| \`([^\`]+)\``, "m").exec(README) ?? [];
  const names = { app: undefined, createServer, fastifyConsole, ...scope };
  const AsyncFunction = mounted.constructor as FunctionConstructor;
  const run = new AsyncFunction(...Object.keys(names), `return ${line.replaceAll(MOUNT, at)}`);
  return run(...Object.values(names));
}

/** Ways to mount the console in servers of users, at a path; "" is the root. */
const ADAPTERS: Record<string, (ops: Console, at: string) => Promise<string>> = {
  "Node.js": async (ops, at) => listen((await mounted("Node.js", { ops }, at)) as Server),
  async Express(ops, at) {
    const app = express();
    await mounted("Express", { ops, app }, at === "" ? "/" : at);
    return listen(createServer(app as RequestListener));
  },
  async Fastify(ops, at) {
    const app = fastify();
    await mounted("Fastify", { ops, app }, at);
    await app.ready();
    return listen(app.server);
  },
  async Hono(ops, at) {
    const app = new Hono();
    await mounted("Hono", { ops, app }, at);
    return listen(
      serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1", overrideGlobalObjects: false }) as Server,
    );
  },
};

/** A proxy that removes the prefix. */
function stripping(prefix: string, target: string): Promise<string> {
  const { port } = new URL(target);
  const forward: RequestListener = (req, res) => {
    const path = req.url?.slice(prefix.length) || "/";
    const { method, headers } = req;
    const sent = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(res);
    });
    res.on("close", () => sent.destroy());
    sent.on("error", () => res.destroy());
    req.pipe(sent);
  };
  return listen(createServer(forward));
}

/** Checks the console at `origin + base`, as a browser and a program see it. @param compresses whether it is mounted by its handler for Node */
async function works(origin: string, base: string, compresses: boolean): Promise<void> {
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(origin + base + path, { redirect: "manual", ...init });
  const closed = await ask("/tasks?filter=failing", { headers: { accept: "text/html" } });
  expect(closed.status).toBe(401);
  expect((await fetch(origin + base, { headers: { accept: "text/html" } })).status).toBe(401);
  const form = await closed.text();
  expect(form).toContain(`<form method="post" action="${base}/login">`);
  expect(form).toContain('name="next" value="/tasks?filter=failing"');
  const login = (from: string) =>
    ask("/login", {
      method: "POST",
      headers: { origin: from },
      body: new URLSearchParams({ token: TOKEN, next: "/tasks?filter=failing" }),
    });
  expect((await login("https://evil.example")).status).toBe(403);
  const signedIn = await login(origin);
  expect([signedIn.status, signedIn.headers.get("location")]).toEqual([303, `${base}/tasks?filter=failing`]);
  const [set = ""] = signedIn.headers.getSetCookie();
  expect(set).toContain(`; Path=${base || "/"};`);
  const headers = { cookie: set.split(";")[0] as string, origin };

  const page = await (await ask("/", { headers })).text();
  expect(page).toContain(`<base href="${base}/" />`);
  const script = /src="\.(\/assets\/[^"]+)"/.exec(page)?.[1] ?? "";
  expect((await ask(script)).headers.get("content-type")).toBe("text/javascript; charset=utf-8");

  // Former addresses lead to the new ones, with their queries.
  for (const [former, path] of [
    ["/calendars?open=a", "/settings/calendars?open=a"],
    ["/backfills?id=1", "/runs?filter=backfills&id=1"],
    ["/owners/a%26b", "/?owner=a%26b"],
  ]) {
    const moved = await ask(former as string, { headers });
    expect([moved.status, moved.headers.get("location")]).toEqual([302, `${base}${path}`]);
  }

  const put = await ask("/api/v1/tasks/q/acme/b", {
    method: "PUT",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ type: "t", schedule: { every: "1h" }, payload: { at: origin + base } }),
  });
  expect([201, 200]).toContain(put.status);
  expect(put.headers.get("location")).toBe(`${base}/api/v1/tasks/q/acme/b`);
  const got = await fetch(origin + put.headers.get("location"), { headers });
  expect(await got.json()).toMatchObject({ id: "b", payload: { at: origin + base } });
  expect((await ask("/api/v1/tasks", { method: "POST", headers, body: "x".repeat(600_000) })).status).toBe(
    413,
  );

  await streams((init) => ask("/api/v1/events", { ...init, headers: { ...headers, ...init.headers } }));

  const board = await (await ask("/queues/", { headers })).text();
  expect(board).toContain(`<base href="${base}/queues/" />`);
  const file = /src="(static\/js\/main[^"]*)"/.exec(board)?.[1] ?? "";
  expect((await ask(`/queues/${file}`, { headers })).headers.get("cache-control")).toBe(
    "private, max-age=3600",
  );
  await eventually(async () => {
    const queues = await (await ask("/queues/api/queues", { headers })).json();
    expect(queues).toMatchObject({ queues: [{ name: "q" }] });
  });

  // Chromium sends these; a router between may call `fetch`, which must not compress.
  const encoded = await ask(script, { headers: { "accept-encoding": "gzip, deflate, br" } });
  expect(encoded.headers.get("content-encoding")).toBe(compresses ? "gzip" : null);
  const nothing = await ask("/nothing", { headers });
  expect([nothing.status, await nothing.json()]).toMatchObject([404, { error: { code: "INVALID_OPTION" } }]);
  const out = await ask("/logout", { method: "POST", headers });
  expect([out.status, out.headers.get("location")]).toEqual([303, `${base}/`]);
}

/**
 * Checks that events arrive, that the stream ends in the console when the client disconnects, and that a HEAD request
 * keeps none open.
 */
async function streams(ask: (init: RequestInit) => Promise<Response>): Promise<void> {
  const listening = vi.spyOn(Client.prototype, "events");
  const head = await ask({ method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream; charset=utf-8"]);
  expect(listening).not.toHaveBeenCalled();
  const leaves = new AbortController();
  const answer = await ask({ signal: leaves.signal });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  expect((await reader.read()).value).toContain("retry: 2000");
  await client.pause({ queue: "q", owner: "acme", id: "a" });
  await client.resume({ queue: "q", owner: "acme", id: "a" });
  let heard = "";
  while (!heard.includes("event: changed")) heard += (await reader.read()).value;
  const { signal } = listening.mock.calls[0]?.[0] ?? {};
  expect(signal?.aborted).toBe(false);
  leaves.abort();
  await eventually(() => signal?.aborted ?? false);
  listening.mockRestore();
}

describe.each(Object.keys(ADAPTERS))("mounted in %s", (name) => {
  const start = ADAPTERS[name]!;

  test("at the root", async () => {
    await works(await start(create(), ""), "", name !== "Hono");
  });

  test("at a path", async () => {
    await works(await start(create({ basePath: MOUNT }), MOUNT), MOUNT, name !== "Hono");
  });

  test("behind a proxy that removes the path", async () => {
    const target = await start(create({ basePath: MOUNT }), "");
    await works(await stripping(MOUNT, target), MOUNT, name !== "Hono");
  });
});

test("the README's server runs as it is written, but for its port", async () => {
  const [source = ""] = codeOf("createConsole(");
  const written = source.replace("8080", '0, "127.0.0.1", function () { console.log(this.address().port) }');
  const env = { ...process.env, REDIS_URL: redis.url, OPS_TOKEN: TOKEN };
  const child = spawn(process.execPath, ["--input-type=module", "--eval", written], { cwd: ROOT, env });
  ends.push(async () => child.kill("SIGKILL"));
  const port = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => /^\d+$/.test(line) && resolve(line));
  });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await fetch(`http://127.0.0.1:${await port}${MOUNT}/api/v1/tasks`, { headers });
  expect(await answer.text()).toContain('"acme"');
});

test("the README's function authenticates people", async () => {
  const [source = ""] = codeOf("auth: (");
  const { auth } = new Function(`return { ${source.replace(/;\s*$/, "")} }`)() as Pick<
    ConsoleOptions,
    "auth"
  >;
  const ops = create({ auth });
  const me = async (headers: Record<string, string>) => {
    const answer = await ops.fetch(new Request("http://ops.example/api/v1/me", { headers }));
    return answer.status === 200 ? await answer.json() : answer.status;
  };
  const email = { "x-auth-request-email": "ada@example.com" };
  expect(await me({})).toBe(401);
  expect(await me(email)).toMatchObject({ name: "ada@example.com", role: "viewer" });
  expect(await me({ ...email, "x-auth-request-groups": "dev,sre" })).toMatchObject({ role: "admin" });
});

/** Examples of the README in JavaScript that contain a text. */
function codeOf(text: string): string[] {
  const blocks = [...README.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, code = ""]) => code);
  return blocks.filter((code) => code.includes(text));
}

describe("with a function that authenticates people", () => {
  /** Reads the headers of a proxy that has authenticated people. */
  const auth = ({ headers }: Request): Person | null => {
    const name = headers.get("x-user");
    if (name === null) return null;
    if (name === "broken") throw new Error("the secret of the directory");
    if (name === "wrong") return { role: "root", name } as unknown as Person;
    const owners = headers.get("x-owners")?.split(",");
    return { role: headers.get("x-role") as Person["role"], name, ...(owners && { owners }) };
  };
  const asker =
    (ops: Console, user: Record<string, string> = {}) =>
    async (method: string, path: string, more: Record<string, string> = {}) => {
      const headers = { "content-type": "application/json", ...user, ...more };
      const body = method === "GET" ? null : "{}";
      const answer = await ops.fetch(new Request(`https://ops.example${path}`, { method, headers, body }));
      return { status: answer.status, text: await answer.text() };
    };
  const OURS = { origin: "https://ops.example" };
  const PAUSE = "/api/v1/tasks/q/acme/a/pause";

  test("admits nobody else, and has no sign-in", async () => {
    const nobody = asker(create({ auth }));
    for (const path of ["/", "/api/v1/tasks", "/queues/", "/login", `/?token=${TOKEN}`]) {
      expect([path, (await nobody("GET", path)).status]).toEqual([path, 401]);
    }
    expect((await nobody("GET", "/api/v1/tasks", { authorization: `Bearer ${TOKEN}` })).status).toBe(401);
    expect((await nobody("GET", "/health")).status).toBe(200);
  });

  test("applies roles, and records the author of a change", async () => {
    const ops = create({ auth });
    const viewer = asker(ops, { "x-user": "vera", "x-role": "viewer" });
    expect(JSON.parse((await viewer("GET", "/api/v1/me")).text)).toMatchObject({
      name: "vera",
      role: "viewer",
      bullBoard: "queues/",
      signsIn: false,
    });
    expect((await viewer("POST", PAUSE, OURS)).status).toBe(403);
    const operator = asker(ops, { "x-user": "oskar@example.com", "x-role": "operator" });
    expect((await operator("POST", PAUSE, OURS)).status).toBe(200);
    expect((await client.get({ owner: "acme", id: "a" })).paused).toMatchObject({ by: "oskar@example.com" });
    expect((await operator("DELETE", "/api/v1/tasks/q/acme/a", OURS)).status).toBe(403);
    expect((await operator("POST", "/api/v1/tasks/q/acme/a/resume", OURS)).status).toBe(200);
  });

  test("applies owners", async () => {
    const bound = asker(create({ auth }), { "x-user": "anna", "x-role": "admin", "x-owners": "acme" });
    const { text } = await bound("GET", "/api/v1/tasks");
    expect(text).toContain('"acme"');
    expect(text).not.toContain('"beta"');
    expect((await bound("DELETE", "/api/v1/tasks/q/beta/a", OURS)).status).toBe(403);
    expect((await bound("GET", "/queues/")).status).toBe(403);
  });

  test("refuses a cross-site write", async () => {
    const admin = asker(create({ auth }), { "x-user": "ada", "x-role": "admin" });
    expect((await admin("POST", PAUSE)).status).toBe(403);
    expect((await admin("POST", PAUSE, { origin: "https://evil.example" })).status).toBe(403);
    // Browsers never send a bearer token on their own.
    expect((await admin("POST", PAUSE, { authorization: "Bearer x" })).status).toBe(200);
  });

  test.each(["broken", "wrong"])("admits nobody if it is %s, and logs the reason", async (user) => {
    const lines: unknown[] = [];
    const logger = { ...SILENT, error: (details: object) => void lines.push(details) };
    const answer = await asker(create({ auth, logger }), { "x-user": user })("GET", "/api/v1/tasks");
    expect([answer.status, answer.text]).toEqual([500, expect.stringContaining("its log says why")]);
    expect(answer.text).not.toContain("secret");
    expect(lines).toContainEqual({
      err: expect.objectContaining({ message: expect.stringMatching(/secret|role/) }),
    });
  });
});

test("without Bull Board; with links to traces", async () => {
  const traceUrl = "https://jaeger.example.com/trace/{traceId}";
  const ops = create({ bullBoard: false, traceUrl });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const ask = (path: string) => ops.fetch(new Request(`http://ops.example${path}`, { headers }));
  await eventually(async () => (await ask("/ready")).status === 200);
  expect((await ask("/queues/")).status).toBe(404);
  const me = await (await ask("/api/v1/me")).json();
  expect(me).not.toHaveProperty("bullBoard");
  expect(me).toMatchObject({ traceUrl });
});

test("closing ends open streams, of which there may be many", async () => {
  const ops = create();
  const warned = vi.spyOn(process, "emitWarning");
  const headers = { authorization: `Bearer ${TOKEN}` };
  const open = () => ops.fetch(new Request("http://ops.example/api/v1/events", { headers }));
  const answers = await Promise.all(Array.from({ length: 20 }, open));
  await ops.close();
  for (const answer of answers) expect(await answer.text()).toContain("retry");
  expect(warned).not.toHaveBeenCalled();
});

test.each<[string, Record<string, unknown>]>([
  ["basePath", { basePath: "ops" }],
  ["basePath", { basePath: "/ops/" }],
  ["basePath", { basePath: "/ops/../x" }],
  ["basePath", { basePath: "/queues" }],
  ["client", { client: {} }],
  ["auth", { auth: undefined }],
  ["auth.admin", { auth: { admin: ["short"] } }],
  ["auth.viewer", { auth: { admin: [TOKEN], viewer: [TOKEN] } }],
  ["auth.root", { auth: { root: [TOKEN] } }],
  ["trustedProxies", { trustedProxies: 11 }],
  ["traceUrl", { traceUrl: "javascript:alert('{traceId}')" }],
  ["logger", { logger: "pino" }],
  ["base", { base: "/ops" }],
])("a wrong %s is refused: %j", (field, options) => {
  const wrong = () => createConsole({ client, auth: { admin: [TOKEN] }, ...options } as ConsoleOptions);
  expect(wrong).toThrow(expect.objectContaining({ code: "INVALID_OPTION", field }));
});

test("a client that is bound to an owner is refused: the console is for the namespace", () => {
  const bound = new Client({ connection: redis.url, owner: "acme" });
  const wrong = () => createConsole({ client: bound, auth: { admin: [TOKEN] } });
  expect(wrong).toThrow(expect.objectContaining({ code: "INVALID_OPTION", field: "client" }));
  return bound.close();
});
