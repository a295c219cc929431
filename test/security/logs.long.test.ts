import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@carillon/sdk";
import { namespaceKeys } from "@carillon/store";
import { eventually, freePort, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { carillon } from "../../apps/cli/test/helpers.js";
import { PATIENCE, Program, Stand } from "../seeds/harness.js";

/* Starts real programs with secrets in correct and wrong configurations, and reads everything that they print. */

const PASSWORD = "p4ss-w0rd-0f-redis";
const ADMIN = "t0ken-0f-an-admin-0123456789";
const OPERATOR = "t0ken-0f-an-operator-0123456789";
const VIEWER = "t0ken-0f-a-viewer-0123456789";
const SIGNING_KEY = "signing-key-0f-webh00ks-0123456789";
const HEADER = "secret-0f-a-header";
const KEY_FILE = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0LW9mLWEta2V5LWZpbGU=\n-----END PRIVATE KEY-----\n";
const SECRETS = [
  PASSWORD,
  encodeURIComponent(PASSWORD),
  ADMIN,
  OPERATOR,
  VIEWER,
  SIGNING_KEY,
  HEADER,
  "c2VjcmV0LW9m",
];

const stand = Stand.use({ appendonly: true, config: { requirepass: PASSWORD } });
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "carillon-logs-"));
  writeFileSync(join(folder, "key.pem"), KEY_FILE);
});
afterAll(() => rmSync(folder, { recursive: true }));

const SCHEDULER = "apps/scheduler/bin/carillon-scheduler.js";
const CONSOLE = "apps/console/bin/carillon-console.js";
const LOUD = { CARILLON_LOG_LEVEL: "trace", CARILLON_PORT: "0", CARILLON_CONSOLE_PORT: "0" };

function url(credentials: string): string {
  return `redis://${credentials}@${stand.redis.host}:${stand.redis.port}`;
}

function program(file: string, env: Record<string, string>): Program {
  const made = new Program(file, [], { CARILLON_NAMESPACE: stand.namespace, ...LOUD, ...env });
  stand.later(() => made.kill());
  return made;
}

/** Everything that a program printed until its end; it must not contain a secret. */
async function printed(one: Program): Promise<string> {
  const { stdout, stderr } = await one.ended;
  return clean(stdout + stderr);
}

function clean(all: string): string {
  for (const secret of SECRETS) expect(all).not.toContain(secret);
  return all;
}

describe("secrets are in no log", () => {
  it("of a scheduler: with the right password, a wrong one, a Redis that stops, an unknown host", async () => {
    const right = program(SCHEDULER, { REDIS_URL: url(`:${PASSWORD}`) });
    await right.says({ msg: "node is running" });
    right.signal("SIGTERM");
    expect(await printed(right)).toContain("stopped");

    const port = await freePort();
    const cases = [
      [{ REDIS_URL: url(`:${PASSWORD}x`) }, "REDIS_AUTH"],
      [{ REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${port}` }, "REDIS_UNAVAILABLE"],
      [{ REDIS_URL: `redis://:${PASSWORD}@nowhere.invalid:6379` }, "REDIS_UNAVAILABLE"],
      [
        { REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${port},redis://:${PASSWORD}@127.0.0.1:${port}` },
        "REDIS_",
      ],
    ] as const;
    await Promise.all(
      cases.map(async ([env, code]) => {
        const wrong = program(SCHEDULER, env);
        const said = () => wrong.said.some((line) => JSON.stringify(line).includes(code));
        await eventually(said, PATIENCE);
        await wrong.kill();
        await printed(wrong);
      }),
    );
  });

  it.each<[string, () => Record<string, string>]>([
    ["is none", () => ({ REDIS_URL: `http://:${PASSWORD}@host` })],
    ["cannot be read", () => ({ REDIS_URL: `redis://:${PASSWORD}%zz@host` })],
    ["has a wrong port", () => ({ REDIS_URL: `redis://:${PASSWORD}@host:port` })],
    ["has a wrong database", () => ({ REDIS_URL: `redis://:${PASSWORD}@host/x` })],
    ["is one of several that is none", () => ({ REDIS_URL: `redis://:${PASSWORD}@a:1,${PASSWORD}` })],
    ["is only a password", () => ({ REDIS_URL: PASSWORD })],
    [
      "comes with a key that is none",
      () => ({ REDIS_URL: url(`:${PASSWORD}`), REDIS_TLS_KEY_FILE: join(folder, "key.pem") }),
    ],
  ])("of the CLI, if the address of Redis %s", async (_what, env) => {
    const { stdout, stderr } = await carillon(["list", "--json"], { env: env() });
    expect(clean(stdout + stderr).length).toBeGreaterThan(0);
  });

  // All programs read the address with the function that the CLI calls.
  it.each<[string, string, () => Record<string, string>]>([
    ["the scheduler, if the address is none", SCHEDULER, () => ({ REDIS_URL: `http://:${PASSWORD}@host` })],
    ["the console, if the address is only a password", CONSOLE, () => ({ REDIS_URL: PASSWORD })],
    [
      "the console, if a token is in the wrong place",
      CONSOLE,
      () => ({ REDIS_URL: "redis://h", CARILLON_NAMESPACE: "x y", CARILLON_TOKEN: `${ADMIN} ` }),
    ],
    [
      "the console, if two tokens are one",
      CONSOLE,
      () => ({ REDIS_URL: url(`:${PASSWORD}`), CARILLON_TOKEN: ADMIN, CARILLON_VIEWER_TOKEN: ADMIN }),
    ],
  ])("of %s", async (_what, file, env) => {
    const one = program(file, env());
    // A program that starts anyway has printed everything once it listens.
    const end = await Promise.race([one.ended, eventually(() => one.said.length > 0, PATIENCE)]);
    if (end === true) await one.kill();
    expect((await printed(one)).length).toBeGreaterThan(0);
  });

  it("of the console: tokens in addresses, headers, forms and cookies", async () => {
    const one = program(CONSOLE, {
      REDIS_URL: url(`:${PASSWORD}`),
      CARILLON_TOKEN: ADMIN,
      CARILLON_OPERATOR_TOKEN: OPERATOR,
      CARILLON_VIEWER_TOKEN: VIEWER,
    });
    const at = String((await one.says({ msg: "listening" }))["url"]);
    for (const [path, init] of [
      [`/?token=${ADMIN}`, {}],
      [`/queues/?token=${VIEWER}&token=${ADMIN}`, {}],
      [`/?token=${OPERATOR}`, {}],
      [`/nothing/${encodeURIComponent("x")}?token=${ADMIN}x`, {}],
      [`/api/v1/tasks?token=${ADMIN}`, { headers: { authorization: `Bearer ${ADMIN}` } }],
      [
        `/api/v1/tasks/pause?token=${ADMIN}`,
        { method: "POST", headers: { authorization: `Bearer ${ADMIN}` } },
      ],
      ["/api/v1/tasks", { headers: { authorization: `Bearer ${ADMIN}x` } }],
      ["/login", { method: "POST", body: new URLSearchParams({ token: `${ADMIN}y` }) }],
      ["/login", { method: "POST", body: new URLSearchParams({ token: ADMIN }) }],
      ["/api/v1/tasks", { headers: { cookie: `carillon_${stand.namespace}=${ADMIN}` } }],
      [
        "/api/v1/tasks",
        {
          method: "POST",
          headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" },
          body: `{"${HEADER}`,
        },
      ],
    ] as const) {
      await fetch(at + path, { redirect: "manual", ...init });
    }
    await one.says({ msg: "sign-in failed" });
    one.signal("SIGTERM");
    expect(await printed(one)).toContain("signed in");
  });

  it("of a worker: the signing key, and requests that are sent, refused or failed", async () => {
    const receiver = createServer((_request, response) => response.writeHead(500).end("no")).listen(
      0,
      "127.0.0.1",
    );
    stand.later(() => receiver.close());
    const own = new Client({ connection: url(`:${PASSWORD}`), namespace: stand.namespace });
    stand.later(() => own.close());
    const one = program("test/security/secretive-worker.mjs", {
      REDIS_URL: url(`:${PASSWORD}`),
      SIGNING_KEY,
    });
    await one.says({ msg: "working" });
    const { port } = receiver.address() as AddressInfo;
    for (const [id, target] of [
      ["failing", `http://127.0.0.1:${port}/${HEADER}?key=${HEADER}`],
      ["refused", `http://10.0.0.1/${HEADER}`],
      ["nowhere", `http://127.0.0.1:${await freePort()}/${HEADER}`],
    ] as const) {
      const payload = {
        url: target,
        method: "POST",
        headers: { Authorization: `Bearer ${HEADER}` },
        body: HEADER,
      };
      const alerts = [{ on: ["failed" as const], url: `http://127.0.0.1:${port}/${HEADER}` }];
      await own.put({ id, queue: "http", type: "http.request", schedule: { every: "1h" }, payload, alerts });
      const triggered = await own.trigger(id);
      if (triggered.outcome !== "enqueued") throw new Error(triggered.outcome);
      await one.says({ event: "settled", run: triggered.run, outcome: "failed" });
    }
    await one.kill();
    await printed(one);
  });
});

describe("one event is one line", () => {
  const FORGED = '\n{"level":60,"msg":"forged"}\n';

  it("whatever names, paths and errors contain", async () => {
    const redis = await startRedis({ appendonly: true });
    stand.later(() => redis.stop());
    const env = { REDIS_URL: redis.url };
    const admin = new Redis(redis.url);
    stand.later(() => admin.disconnect());
    const client = new Client({ connection: redis.url, namespace: stand.namespace });
    stand.later(() => client.close());
    const keys = namespaceKeys(stand.namespace);
    const queue = keys.queue("q");
    for (const id of ["a", "b"]) await client.put({ id, queue: "q", type: "t", schedule: { every: "1s" } });
    // An attacker with write access to Redis forges log lines wherever a node might log data.
    for (const due of queue.dues) await admin.zadd(due, 0, `system/x${FORGED}`);
    await admin.hset(queue.task("system/b"), "schedule", JSON.stringify({ cron: FORGED }));
    await admin.zadd(queue.next, 0, `9${FORGED}`, 0, "0");
    await admin.zadd(queue.runs, 0, `x@${FORGED}`);
    await admin.hset(keys.queues, `q${FORGED}`, "1");
    await admin.hset(keys.nodes, "n", JSON.stringify({ id: "n", beat: 1, every: 1, tzdata: FORGED }));

    const node = program(SCHEDULER, env);
    await node.says({ msg: "node is running" });
    await node.says({ msg: "due, but its definition is missing or corrupt" });
    await eventually(async () => (await client.runs.list("a")).length > 0, PATIENCE);
    const console_ = program(CONSOLE, { ...env, CARILLON_TOKEN: ADMIN });
    const at = String((await console_.says({ msg: "listening" }))["url"]);
    const headers = { authorization: `Bearer ${ADMIN}`, "x-forwarded-for": "1.2.3.4", "user-agent": "x" };
    for (const path of [
      FORGED,
      "/api/v1/tasks/q/system/%0A%7B%22msg%22:%22forged%22%7D",
      "/api/v1/%0d%0aforged",
    ]) {
      await fetch(at + encodeURI(decodeURI(path.startsWith("/") ? path : `/${path}`)), {
        method: "DELETE",
        headers,
      });
    }
    await console_.says({ msg: "write" });

    for (const one of [node, console_]) {
      one.signal("SIGTERM");
      const { stdout, stderr } = await one.ended;
      expect(stderr).toBe("");
      const lines = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(lines.length).toBeGreaterThan(3);
      expect(lines.filter(({ msg }) => msg === "forged")).toEqual([]);
      // All lines of our programs carry name, time and pid.
      expect(lines.filter(({ name, time, pid }) => !(name && time && pid))).toEqual([]);
    }
  });
});
