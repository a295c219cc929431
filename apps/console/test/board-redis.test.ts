import { connect } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Console, startConsole } from "./harness.js";

let console_: Console;
let redis: ReturnType<typeof connect>;
beforeAll(async () => {
  console_ = await startConsole();
  redis = connect(console_.redis.url, "safe");
  redis.on("error", () => {});
  await console_.client.put({ id: "a", type: "t", queue: "q", schedule: { every: "1h" } });
  await console_.board.refresh();
});
afterAll(async () => {
  redis.disconnect();
  await console_.stop();
});

/** What the page gets for a write of its own, which BullMQ sends and not our store. */
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
  // After READONLY the connection is made anew.
  await eventually(async () => (await add())[0] === 200);
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
  // What BullMQ has its waiting jobs in.
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
