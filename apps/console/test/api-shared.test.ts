import { Redis } from "ioredis";
import { beforeAll, expect, test } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { ADMIN, ownConsole, VIEWER } from "./harness.js";

// Its commands are counted.
const own = ownRedis({ appendonly: true });
const console_ = ownConsole({ refreshEvery: 3_600_000 }, own);
const put = (id: string, owner: string) =>
  console_.client.put({ id, owner, type: "t", queue: "q", schedule: { every: "1h" } });

beforeAll(async () => {
  await put("a", "acme");
  await put("b", "bolt");
});

/** Accepts any answer that the console still has. */
const OLD = { "cache-control": "max-age=3600" };
const read = async (token: string, path: string, more: Record<string, string> = OLD) =>
  (await console_.api("GET", path, undefined, { authorization: `Bearer ${token}`, ...more })).body;
const ids = async (token: string, query = "", more = OLD as Record<string, string>) => {
  const { tasks } = (await read(token, `/tasks${query}`, more)) as { tasks?: { id: string }[] };
  return tasks?.map(({ id }) => id).sort();
};

/** Commands that Redis has run. */
async function commands(): Promise<number> {
  const redis = new Redis(console_.redis.url);
  const text = await redis.info("commandstats");
  redis.disconnect();
  const counted = [...text.matchAll(/cmdstat_(\w+).*?calls=(\d+)/g)].filter(
    ([, name]) => !["info", "ping", "client", "quit", "hello"].includes(String(name)),
  );
  return counted.reduce((sum, [, , calls]) => sum + Number(calls), 0);
}

test("callers share an answer that is not too old for them; a bound token gets its owner's tasks alone", async () => {
  const { secret } = await console_.ops.tokens.create({
    ...{ name: "acme", role: "viewer", owners: ["acme"] },
  });
  for (let n = 0; n < 2; n++) {
    expect(await ids(VIEWER)).toEqual(["a", "b"]);
    expect(await ids(secret)).toEqual(["a"]);
    expect(await ids(VIEWER, "?owner=acme")).toEqual(["a"]);
    expect(await ids(secret, "?owner=acme")).toEqual(["a"]);
  }
  const suggested = async (token: string) => (await read(token, "/names?of=owner"))["names"];
  for (let n = 0; n < 2; n++) {
    expect(await suggested(VIEWER)).toEqual(["acme", "bolt"]);
    expect(await suggested(secret)).toEqual(["acme"]);
  }
  await put("c", "acme");
  expect([await ids(ADMIN), await ids(secret)]).toEqual([["a", "b"], ["a"]]);
  expect(await ids(VIEWER, "", { "cache-control": "max-age=0" })).toEqual(["a", "b", "c"]);
  expect(await ids(VIEWER, "", {})).toEqual(["a", "b", "c"]);
});

test("fifteen viewers with one token cost Redis what one costs, and none is refused", async () => {
  const paths = [
    "/status",
    "/runs/trends",
    "/load",
    "/tasks?limit=8",
    "/tasks/counts",
    "/queues",
    "/upcoming",
    "/board",
    "/doctor",
  ];
  const view = () => Promise.all(paths.map((path) => read(VIEWER, path)));
  await view();
  const before = await commands();
  const answers = await Promise.all(Array.from({ length: 15 }, view));
  expect((await commands()) - before).toBe(0);
  expect(answers.flat().filter((one) => Object.hasOwn(one as object, "error"))).toEqual([]);
});

test("a write is in the next answer", async () => {
  await ids(VIEWER);
  const task = { id: "d", owner: "bolt", type: "t", queue: "q", schedule: { every: "1h" } };
  await console_.api("POST", "/tasks", task);
  expect(await ids(VIEWER)).toEqual(["a", "b", "c", "d"]);
});

test("errors are not shared", async () => {
  const ask = () => read(VIEWER, "/tasks/q/acme/later");
  expect((await ask()).error?.["code" as never]).toBe("TASK_NOT_FOUND");
  await put("later", "acme");
  expect(await ask()).toMatchObject({ id: "later" });
});
