import { Redactor } from "@carillon/ops/internal";
import { Client } from "@carillon/sdk";
import { connect, Store } from "@carillon/sdk/internal";
import { eventually } from "@carillon/testing";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { createApp } from "../src/app.js";
import { Board } from "../src/bull-board.js";
import { ADMIN, ownConsole, SILENT } from "./harness.js";

const own = ownRedis({ appendonly: true });
const console_ = ownConsole({}, own);
let redis: ReturnType<typeof connect>;
beforeAll(async () => {
  redis = connect(console_.redis.url, "safe");
  redis.on("error", () => {});
  await console_.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
  await console_.board.refresh();
});
afterAll(async () => {
  redis.disconnect();
});

/** The answer to a write of the page that BullMQ sends, not our store. */
async function add(): Promise<[status: number, code: string | undefined]> {
  const { status, body } = await console_.admin("POST", "/queues/api/queues/q/add", { name: "t", data: {} });
  return [status, body.error?.code];
}

test("a job that Redis refuses is answered with the reason", async () => {
  await redis.config("SET", "maxmemory", "1");
  expect(await add()).toEqual([503, "REDIS_OUT_OF_MEMORY"]);
  await redis.config("SET", "maxmemory", "0");
  await redis.replicaof("127.0.0.1", "1");
  expect(await add()).toEqual([503, "REDIS_READ_ONLY"]);
  await redis.replicaof("NO", "ONE");
  // READONLY makes ioredis reconnect.
  await eventually(async () => (await add())[0] === 200);
});

test("/ready reports that Redis accepts no writes, and the board still reads", async () => {
  const ready = async () => {
    await console_.board.refresh();
    const response = await console_.ask("/ready");
    return [response.status, await response.json()];
  };
  await redis.config("SET", "min-replicas-to-write", "1");
  expect(await ready()).toEqual([503, { status: "read-only", code: "REDIS_UNAVAILABLE" }]);
  expect((await console_.admin("GET", "/queues/api/queues")).status).toBe(200);
  await redis.config("SET", "min-replicas-to-write", "0");
  await redis.config("SET", "maxmemory", "1");
  expect(await ready()).toEqual([503, { status: "read-only", code: "REDIS_OUT_OF_MEMORY" }]);
  await redis.config("SET", "maxmemory", "0");
  expect(await ready()).toEqual([200, { status: "ready" }]);
});

test("a console with a read-only user is ready, and checks once whether it may write", async () => {
  const viewer = ["on", ">secret", "~{console-test}:*", "-@all", "+hkeys", "+info", "+select"];
  await redis.call("ACL", "SETUSER", "viewer", ...viewer);
  const url = console_.redis.url.replace("redis://", "redis://viewer:secret@");
  const store = new Store({ connection: url, namespace: "console-test" });
  const client = new Client({ store });
  const logger = pino({ level: "silent" });
  const { signal: closing } = new AbortController();
  const site = {
    basePath: "",
    trustedProxies: 0,
    replacer: undefined,
    bullBoard: true,
    signsIn: true,
    closing,
  };
  const board = new Board({ client, store, logger, redactor: new Redactor([]), site });
  await redis.call("ACL", "LOG", "RESET");
  await eventually(async () => {
    await board.refresh();
    return board.problem === undefined;
  });
  expect([board.problem, board.writeProblem]).toEqual([undefined, undefined]);
  // Redis logs equal refusals as one entry with a count.
  const [refusal = []] = (await redis.call("ACL", "LOG")) as unknown[][];
  expect(refusal.slice(0, 2)).toEqual(["count", 1]);
  await board.close();
  await store.close();
});

test("a connection that breaks while a job is sent is a 503", async () => {
  await redis.call("CLIENT", "PAUSE", "20000", "WRITE");
  const answer = add();
  await eventually(async () => /cmd=eval/.test(String(await redis.call("CLIENT", "LIST"))));
  await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  expect(await answer).toEqual([503, "REDIS_UNAVAILABLE"]);
  await redis.call("CLIENT", "UNPAUSE");
  expect(console_.log()).not.toContain("a request failed");
});

test("the log of a request that failed holds no data of jobs", async () => {
  await eventually(async () => (await add())[0] === 200);
  // The list of waiting jobs.
  const [key = ""] = await redis.keys("*q*:wait");
  await redis.del(key);
  await redis.set(key, "of another kind");
  const job = { name: "t", data: { note: "s3cret-0f-a-job" } };
  const { status, body } = await console_.admin("POST", "/queues/api/queues/q/add", job);
  expect([status, body.error?.code]).toEqual([500, "INTERNAL"]);
  const [line = ""] = console_
    .log()
    .split("\n")
    .filter((one) => one.includes("a request failed"));
  expect(JSON.parse(line)).toMatchObject({
    err: {
      type: expect.any(String),
      message: expect.stringContaining("WRONGTYPE"),
      stack: expect.any(String),
    },
  });
  expect(console_.log()).not.toContain("s3cret-0f-a-job");
});

test("a browser gets a page that says that Redis cannot be reached, a program JSON", async () => {
  const store = new Store({ connection: "redis://127.0.0.1:1", namespace: "away", readyTimeout: 10 });
  const logger = { ...SILENT, trace() {}, fatal() {} };
  const parts = {
    client: new Client({ store }),
    store,
    logger,
    auth: { admin: [ADMIN], viewer: [], operator: [] },
  };
  const { app, board } = createApp(parts as never);
  const incoming = { socket: { remoteAddress: "127.0.0.1" } };
  for (const [accept, type] of [
    ["text/html", "text/html"],
    ["*/*", "application/json"],
  ] as const) {
    const request = new Request("http://localhost/runs", {
      headers: { accept, authorization: "Bearer carillon_a_b" },
    });
    const answer = await app.fetch(request, { incoming });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([503, expect.stringContaining(type)]);
    const text = await answer.text();
    expect(text).toContain("Redis cannot be reached.");
    // The page is asked for again by itself.
    expect(text.includes('<meta http-equiv="refresh"')).toBe(type === "text/html");
  }
  await board.close();
  await store.close();
});
