import { operatorOf } from "@carillon/ops";
import { internalsOf, storeOf } from "@carillon/store/internal";
import { beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../apps/console/src/app.js";
import { PAGE_PATHS } from "../../apps/console/src/page-paths.js";
import { ADMIN, OPERATOR, ownConsole, sessionOf, VIEWER } from "../../apps/console/test/harness.js";
import { SILENT } from "../helpers.js";

/*
 * Tries every route of the console, Bull Board's included, read from the app itself, so that new ones are tried too.
 * Tests in apps/console/test check their answers to good and bad input.
 */

interface Route {
  readonly path: string;
  readonly handler: { readonly name: string };
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const READS = ["GET", "HEAD"];
/** Paths open to everybody; all others begin at the guard. */
const OPEN = ["/health", "/ready", "/carillon.svg", "/login.css", "/assets/:file", "/login", "/logout"];
/** Addresses of the pages: one document without data. */
const PAGES = PAGE_PATHS.map(filledIn);
/** Changes that an operator may make; all others are for admins only. */
const ACTS = [
  "POST /api/v1/tasks/pause",
  "POST /api/v1/tasks/resume",
  "POST /api/v1/tasks/trigger",
  "POST /api/v1/runs/cancel",
  "POST /api/v1/runs/replay",
  "POST /api/v1/queues/q/pause",
  "POST /api/v1/queues/q/resume",
  "POST /api/v1/tasks/q/system/a/pause",
  "POST /api/v1/tasks/q/system/a/resume",
  "POST /api/v1/tasks/q/system/a/trigger",
  "POST /api/v1/tasks/q/system/a/backfills",
  "POST /api/v1/tasks/q/system/a/observe",
  "POST /api/v1/freezes",
  "DELETE /api/v1/freezes/a",
  "POST /api/v1/alerts/test",
  "POST /api/v1/silences",
  "DELETE /api/v1/silences/a",
  "POST /api/v1/backfills",
  "POST /api/v1/backfills/a/cancel",
  "POST /api/v1/runs/a/cancel",
  "POST /api/v1/runs/a/replay",
  "POST /api/v1/runs/a/retry-items",
  "PUT /queues/api/queues/pause",
  "PUT /queues/api/queues/resume",
  "PUT /queues/api/queues/q/pause",
  "PUT /queues/api/queues/q/resume",
  "PUT /queues/api/queues/q/promote",
  "PUT /queues/api/queues/q/retry/a",
  "PUT /queues/api/queues/q/a/retry",
  "PUT /queues/api/queues/q/a/promote",
  "PUT /queues/api/queues/q/job-schedulers/system%2Fa/run",
];
/** Requests that refer to a missing run, freeze, backfill or job. */
const NAMES_NOTHING = new Set(
  ACTS.filter((what) => /\/(backfills|freezes|silences|runs|q)\/a(\/|$)/.test(what)),
);
/** Paths for a token that is bound to owners. It is refused everywhere else, including Bull Board and future paths. */
const OWNED = [
  ...[
    "",
    "/counts",
    "/pause",
    "/resume",
    "/resume-plan",
    "/validate",
    "/trigger",
    "/tag",
    "/edit",
    "/spread",
    "/delete",
  ].map((rest) => `/api/v1/tasks${rest}`),
  ...[
    "",
    "/pause",
    "/resume",
    "/move",
    "/trigger",
    "/runs",
    "/runs/find-items",
    "/revisions",
    "/restore",
    "/skips",
    "/stats",
  ].map((rest) => `/api/v1/tasks/q/system/a${rest}`),
  ...["explain", "ticks", "backfills", "observe", "shadow/report"].map(
    (rest) => `/api/v1/tasks/q/system/a/${rest}`,
  ),
  ...[
    "backfills",
    "backfills/a",
    "backfills/a/cancel",
    "freezes",
    ...["freezes/a"],
    ...["alerts", "alerts/undelivered", "alerts/test", "silences", "silences/a", "deleted"],
    ...["running", "journal", "stats", "cancel"].map((verb) => `runs/${verb}`),
    "runs/replay",
    "names",
    "runs/a",
    "runs/a/items",
    "runs/a/compare",
    "runs/a/replay",
    "runs/a/retry-items",
  ],
  "names",
  "me",
  "openapi.json",
  "types/a",
  // Calendars can be read by all, and changed only by tokens without owners.
  ...["calendars", "calendars/a"],
  ...["board", "ticks", "load", "events"],
  ...["runs/failures", "runs/trends", "runs/a/cancel", "upcoming", "status", "changes", "changes/a/undo"],
  ...PAGES,
].map((path) => (path.startsWith("/") ? path : `/api/v1/${path}`));
/** Paths that only an admin may read or write. */
const FOR_ADMINS = ["/api/v1/namespaces", "/api/v1/tokens", "/api/v1/tokens/a"];
const isForAdmins = (what: string) => FOR_ADMINS.includes(what.split(" ")[1] as string);
/** Requests with a body that change nothing. */
const ASKS = ["POST /api/v1/tasks/validate", "POST /api/v1/tasks/resume-plan"];

const console_ = ownConsole();
let routes: { before: string[]; behind: string[]; guards: string[]; mounted: string[] };
let session = { viewer: "", operator: "", admin: "" };

beforeAll(async () => {
  await console_.client.put({ id: "a", queue: "q", type: "t", schedule: { every: "1h" } });
  await console_.client.trigger("a");
  await console_.board.refresh();
  routes = readRoutes();
  const signIn = async (token: string) => sessionOf(await console_.ask(`/?token=${token}`));
  session = {
    ...{ viewer: await signIn(VIEWER), operator: await signIn(OPERATOR) },
    admin: await signIn(ADMIN),
  };
});

function readRoutes() {
  const { client } = console_;
  const { app, board } = createApp({
    ...{ client, store: storeOf(client), logger: SILENT as never },
    auth: { admin: [ADMIN] },
  });
  const guard = app.routes.findIndex(({ handler }) => handler.name === "identify");
  const behind = pathsOf(app.routes.slice(guard));
  const boards = pathsOf(board.app("admin")?.routes ?? []);
  const read = {
    before: pathsOf(app.routes.slice(0, guard)).filter((path) => path !== ALL),
    behind: [...behind.filter((path) => !path.includes("*")), ...boards.filter((path) => path !== ALL)].map(
      filledIn,
    ),
    guards: app.routes.filter(({ path }) => path === ALL).map(({ handler }) => handler.name),
    mounted: behind.filter((path) => path !== ALL && path.includes("*")),
  };
  void board.close();
  return read;
}

const ALL = "/*";

/** Paths without duplicates: a path has a route for each method and each handler. */
function pathsOf(routes: readonly Route[]): string[] {
  return [...new Set(routes.map(({ path }) => path))];
}

/** Fills in names of existing things. */
function filledIn(path: string): string {
  const names: Record<string, string> = {
    queue: "q",
    queueName: "q",
    owner: "system",
    schedulerId: "system%2Fa",
  };
  return path.replace(/:(\w+)/g, (_, name: string) => names[name] ?? "a").replace("*", "a");
}

type Headers = Record<string, string>;

/** Answers to each method on each path. No key in Redis may change meanwhile. */
async function tryAll(
  methods: readonly string[],
  headers: Headers,
  not: readonly string[] = [],
): Promise<Map<string, Response>> {
  const answers = new Map<string, Response>();
  const before = await dump();
  for (const path of routes.behind) {
    const asked = methods
      .map((method) => `${method} ${path}`)
      .filter((what) => ![...ASKS, ...not].includes(what));
    const given = await Promise.all(
      asked.map((what) => console_.ask(path, { method: what.split(" ")[0] as string, headers })),
    );
    for (const [i, answer] of given.entries()) {
      // A stream of events does not end on its own.
      if (answer.headers.get("content-type")?.startsWith("text/event-stream")) await answer.body?.cancel();
      else await answer.arrayBuffer();
      answers.set(asked[i] as string, answer);
    }
  }
  expect(await dump()).toEqual(before);
  return answers;
}

async function dump(): Promise<Record<string, unknown>> {
  const { client } = internalsOf(storeOf(console_.client)).link;
  const keys = (await client.keys("*")).sort();
  const values = await Promise.all(
    // Reading a hash may change the order of its fields.
    keys.map(async (key) =>
      (await client.type(key)) === "hash"
        ? Object.entries(await client.hgetall(key)).sort()
        : (await client.dumpBuffer(key))?.toString("base64"),
    ),
  );
  return Object.fromEntries(keys.map((key, i) => [key, values[i]]));
}

/** Answers with other statuses. */
function otherThan(statuses: readonly number[], answers: ReadonlyMap<string, Response>): string[] {
  return [...answers].flatMap(([what, { status }]) =>
    statuses.includes(status) ? [] : [`${status} ${what}`],
  );
}

function refusedOf(answers: ReadonlyMap<string, Response>): string[] {
  return [...answers].flatMap(([what, { status }]) => (status === 401 || status === 403 ? [what] : []));
}

const writes = METHODS.filter((method) => !READS.includes(method));

it("the list of routes is complete: only the open ones come before the guard", () => {
  expect(routes.before).toEqual(OPEN);
  // This test must cover every other mounted app: the API's client for each request, and Bull Board.
  expect(routes.mounted).toEqual(["/api/v1/*", "/queues/*"]);
  expect(routes.guards).toEqual([
    // Steps shared by all requests: these come first, and the log of writes last.
    ...["", "securityHeaders", "sameOrigin", "link", "identify", "roleAllows", "", "noPage"],
  ]);
  expect(routes.behind.length).toBeGreaterThan(60);
  expect(routes.behind).toContain("/api/v1/tasks/q/system/a/trigger");
  expect(routes.behind).toContain("/queues/api/queues/q/obliterate");
});

describe("each method of each route", () => {
  it.each<[string, Headers]>([
    ["nothing", {}],
    ["an empty token", { authorization: "Bearer " }],
    ["another scheme", { authorization: `Basic ${btoa(`admin:${ADMIN}`)}` }],
    ["the token as a cookie", { cookie: `carillon_console-test=${ADMIN}` }],
    ["a session that nobody signed", { cookie: "carillon_console-test=admin.zzzzzzzz.nonce.mac" }],
    ["the word of a proxy", { "x-forwarded-user": "admin", "x-forwarded-for": "127.0.0.1" }],
    ["another method in a header", { "x-http-method-override": "GET" }],
  ])("is closed to a request with %s", async (_, headers) => {
    expect(otherThan([401], await tryAll(METHODS, headers))).toEqual([]);
  });

  it("lets a viewer read all and write none, by token and by session", async () => {
    for (const headers of [
      { authorization: `Bearer ${VIEWER}` },
      { cookie: session.viewer, origin: console_.url },
      { authorization: `Bearer ${VIEWER}`, "x-http-method-override": "GET", "x-method-override": "GET" },
    ]) {
      expect(otherThan([403], await tryAll(writes, headers as Headers))).toEqual([]);
    }
    const looked = await tryAll(READS, { authorization: `Bearer ${VIEWER}` });
    expect(refusedOf(looked)).toEqual(FOR_ADMINS.flatMap((path) => READS.map((read) => `${read} ${path}`)));
    expect([...looked].filter(([, { status }]) => status >= 500).map(([what]) => what)).toEqual([]);
  });

  it("lets an operator read all and act on tasks, and define, edit and remove nothing", async () => {
    const token = { authorization: `Bearer ${OPERATOR}` };
    for (const headers of [token, { cookie: session.operator, origin: console_.url }]) {
      expect(otherThan([403], await tryAll(writes, headers as Headers, ACTS))).toEqual([]);
    }
    const looked = await tryAll(READS, token);
    expect(refusedOf(looked).filter((what) => !isForAdmins(what))).toEqual([]);
    expect(refusedOf(looked)).toHaveLength(6);
    const known = new Set(routes.behind.flatMap((path) => writes.map((method) => `${method} ${path}`)));
    for (const what of ACTS) {
      expect([what, known.has(what)]).toEqual([what, true]);
      const [method = "", path = ""] = what.split(" ");
      const { status } = await console_.ask(path, { method, headers: token });
      const never = NAMES_NOTHING.has(what) ? [401, 403, 405] : [401, 403, 404, 405];
      expect([what, never.includes(status)]).toEqual([what, false]);
    }
  });

  it("lets a token that is bound to owners reach only their tasks, whatever its role", async () => {
    const { client } = console_;
    await client.put({ id: "of-others", queue: "q", type: "t", schedule: { every: "1h" } });
    await client.trigger("of-others");
    await operatorOf(client).freezes.put({
      owner: "system",
      note: "of-others",
      until: Date.now() + 3_600_000,
    });
    const [acme, system] = await Promise.all(
      ["acme", "system"].map(async (owner) => {
        const made = await operatorOf(client).tokens.create({
          name: `bound-to-${owner}`,
          role: "admin",
          owners: [owner],
        });
        return { authorization: `Bearer ${made.secret}` };
      }),
    );
    const pathOf = (what: string) => what.split(" ")[1] as string;
    const own = await tryAll(READS, system as Headers);
    expect(refusedOf(own).filter((what) => OWNED.includes(pathOf(what)))).toEqual([]);
    expect([...own.keys()].filter((what) => !OWNED.includes(pathOf(what)))).toEqual(refusedOf(own));
    // Without a body, the request freezes the tasks of the token's own owner.
    const others = await tryAll(METHODS, acme as Headers, ["POST /api/v1/freezes"]);
    const open = [...others.keys()].filter((what) => !refusedOf(others).includes(what)).map(pathOf);
    expect(open.filter((path) => !OWNED.includes(path))).toEqual([]);
    const ofOthers = [...others].filter(
      ([what]) => what.includes("/system/") && !PAGES.includes(pathOf(what)),
    );
    // 405 means that the path does not have the method.
    expect(
      ofOthers.filter(([, { status }]) => status !== 403 && status !== 405).map(([what]) => what),
    ).toEqual([]);
    // The document of the API is the same for all tokens. Streams of events do not end:
    // apps/console/test/tokens.test.ts reads them.
    for (const path of OWNED.filter((path) => !/\/(openapi\.json|events)$/.test(path))) {
      const text = await (await console_.ask(path, { headers: acme as Headers })).text();
      expect([path, text.includes("of-others")]).toEqual([path, false]);
      expect([path, text]).toEqual([path, expect.not.stringContaining('"system"')]);
    }
    const listed = await (await console_.ask("/api/v1/tasks", { headers: system as Headers })).text();
    expect(listed).toContain("of-others");
    for (const path of ["/API/v1/nodes", "/api/V1/tokens", "/queues", "/nothing"]) {
      expect([path, (await console_.ask(path, { headers: acme as Headers })).status]).toEqual([path, 403]);
    }
  });

  it.each(["/API/v1/tokens", "/api/V1/tokens/", "/api/v1/tokens/a", "/api/v1/Tokens?a=b"])(
    "a viewer's GET %s is refused",
    async (path) => {
      for (const token of [VIEWER, OPERATOR]) {
        const answer = await console_.ask(path, { headers: { authorization: `Bearer ${token}` } });
        expect(answer.status).toBe(403);
      }
    },
  );

  it.each([
    // Other spellings, and other routes that resemble those of an operator.
    ["PUT", "/queues/api/queues/q/clean/retry"],
    ["PUT", "/queues/api/queues/q/CLEAN/promote"],
    ["PUT", "/queues/api/queues/q/job-schedulers/system%2Fa/remove"],
    ["PATCH", "/queues/api/queues/q/job-schedulers/system%2Fa"],
    ["POST", "/api/v1/tasks/delete"],
    ["DELETE", "/api/v1/queues/q"],
    ["DELETE", "/api/v1/queues/pause"],
    ["DELETE", "/api/v1/tasks/q/system/a"],
    ["PUT", "/api/v1/tasks/q/system/pause"],
    ["POST", "/API/v1/tasks/q/system/a/../a/delete"],
    ["POST", "//api/v1/tasks/pause"],
  ])("an operator's %s %s is refused", async (method, path) => {
    const headers = { authorization: `Bearer ${OPERATOR}` };
    expect((await console_.ask(path, { method, headers })).status).toBe(403);
  });

  it.each(["POST /api/v1/tasks/q/system/a/pause/", "GET /api/v1/tasks/q/system/a/"])(
    "no route is there: %s, for whom its operation would be allowed",
    async (what) => {
      const [method = "", path = ""] = what.split(" ");
      const headers = { authorization: `Bearer ${OPERATOR}` };
      expect((await console_.ask(path, { method, headers })).status).toBe(404);
    },
  );

  it("refuses writes from a page of another site, whoever is signed in", async () => {
    for (const headers of [
      { cookie: session.admin, origin: "https://evil.example" },
      { cookie: session.admin, origin: "null" },
      // An old browser, or a page that sends no referrer.
      { cookie: session.admin },
      { authorization: `Bearer ${ADMIN}`, origin: "https://evil.example" },
    ]) {
      expect(otherThan([403], await tryAll(writes, headers as Headers))).toEqual([]);
    }
  });

  it("lets no other site read, frame or sniff its answers", async () => {
    const all = [
      ...(await tryAll(READS, { authorization: `Bearer ${ADMIN}`, origin: "https://evil.example" })),
      ...(await tryAll(METHODS, { origin: "https://evil.example" })),
    ];
    for (const [what, { headers }] of all) {
      const names = [...headers.keys()].filter((name) => name.startsWith("access-control-"));
      expect([what, ...names]).toEqual([what]);
      expect([what, headers.get("x-content-type-options"), headers.get("x-frame-options")]).toEqual([
        ...[what, "nosniff", "DENY"],
      ]);
      const policy = headers.get("content-security-policy") ?? "";
      expect([what, policy]).toEqual([
        what,
        expect.stringContaining("default-src 'none'; script-src 'self'"),
      ]);
      expect(policy).not.toMatch(/script-src[^;]*unsafe/);
      expect([what, headers.get("cross-origin-resource-policy"), headers.get("cache-control")]).toEqual([
        ...[what, "same-origin", "no-store"],
      ]);
      expect([what, headers.get("x-powered-by"), headers.get("server")]).toEqual([what, null, null]);
    }
  });
});
