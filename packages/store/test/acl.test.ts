import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { REDIS_TIME, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { loadBull } from "../src/bull/load.js";
import { assemble } from "../src/script/assemble.js";
import { DECLARED } from "../src/script/script.js";

const FILE = readFileSync(new URL("../../../deploy/redis/carillon.acl", import.meta.url), "utf8");
const USERS = new Map(
  FILE.trim()
    .split("\n")
    .map((line) => line.split(" "))
    .map(([, name, ...rules]) => [name as string, rules]),
);
const granted = (user: string) =>
  (USERS.get(`carillon-${user}`) ?? []).filter((rule) => rule.startsWith("+")).map((rule) => rule.slice(1));

/** Commands that ioredis sends on its own, and that every process needs; AUTH, the rest, needs no permission. */
const CONNECTION = ["ping", "select", "info", "time", "eval", "evalsha", "client|setname"];
/** Redis Cluster only. */
await loadBull();

const CLUSTER = ["cluster|slots", "cluster|info", "asking", "readonly"];
/** Frequent scripts are functions. */
const FUNCTIONS = ["fcall", "function|load"];
const SUBSCRIBER = ["subscribe", "unsubscribe"];
/** Commands that TypeScript sends and no script contains. */
const OURS = ["hkeys", "zincrby", "zlexcount", "zrangebylex", "xrevrange", "client|list"];
const BULLMQ = ["bzpopmin", "hscan", "multi", "exec", "sscan"];
/** Scripts of BullMQ 6.7's other product, which we never call. */
const UNUSED = /^relay/;

const calls = (lua: string) =>
  [...lua.matchAll(/call\(\s*['"](\w+)['"]/g)].map(([, name]) => `${name}`.toLowerCase());
/** Only workers send this script. It contains scripts of BullMQ. */
const WORKERS = "turn";
const ours = [...DECLARED.values()]
  .filter(({ name }) => name !== WORKERS)
  .flatMap((script) => calls(assemble(script, { time: REDIS_TIME, sabotage: [] })));
const theirs = bullScripts().flatMap(([name, lua]) => (UNUSED.test(name) ? [] : calls(lua)));
// redlock
const mutex = ["exists", "get", "set", "del"];

/** The scripts that BullMQ registers on a connection, which is never opened here. */
function bullScripts(): [name: string, lua: string][] {
  const connection = new Redis({ lazyConnect: true, enableOfflineQueue: false });
  const quiet = { skipMetasUpdate: true, skipWaitingForReady: true, skipVersionCheck: true };
  new Queue("none", { connection, ...quiet }).on("error", () => {});
  const { scriptsSet } = connection as unknown as { scriptsSet: Record<string, { lua: string }> };
  return Object.entries(scriptsSet).map(([name, { lua }]) => [name, lua]);
}

/** Names of methods called on objects named like a connection. */
function sentBy(name: string): string[] {
  const folder = fileURLToPath(new URL(`../../${name}/src`, import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const text = files.map((file) => readFileSync(join(folder, file), "utf8")).join("\n");
  return [...text.matchAll(/\b(?:client|connection|redis|change)\s*\.(\w+)\(/g)].map(
    ([, method]) => `${method}`,
  );
}

const sorted = (names: readonly string[]) => [...new Set(names)].sort();

describe("deploy/redis/carillon.acl", () => {
  const redis = ownRedis({ acl: FILE });
  let admin: Redis;
  beforeAll(async () => {
    admin = new Redis(redis.port, { username: "carillon-admin", password: "change-me-admin" });
  });
  afterAll(async () => {
    admin.disconnect();
  });

  it("grants a node exactly the commands of our scripts", () => {
    const wanted = [...CONNECTION, ...CLUSTER, ...SUBSCRIBER, ...FUNCTIONS, ...OURS, ...mutex, ...ours];
    expect(granted("node")).toEqual(sorted(wanted));
  });

  it("grants an application the commands of BullMQ's scripts as well", () => {
    const wanted = [
      ...CONNECTION,
      ...CLUSTER,
      ...SUBSCRIBER,
      ...FUNCTIONS,
      ...OURS,
      ...BULLMQ,
      ...mutex,
      ...ours,
      ...theirs,
    ];
    expect(granted("app")).toEqual(sorted(wanted));
  });

  it("lets a node read the names of a backlog, with priorities too", async () => {
    const connection = `redis://carillon-node:change-me-node@127.0.0.1:${redis.port}`;
    const store = new Store({ connection });
    const { due, priorities } = internalsOf(store).keys.queue("q");
    await admin.zadd(due(0), 1, "system/a");
    const ranges = [{ shard: 0, by: 1 }];
    const name = { shard: 0, local: "system/a", at: 1 };
    const names = async () => (await store.claims.dueNames("q", ranges)).names;
    expect(await names()).toEqual([{ ...name, priority: 0 }]);
    await admin.hset(priorities, "system/a", 3);
    expect(await names()).toEqual([{ ...name, priority: 3 }]);
    await store.close();
  });

  it("grants a viewer only those of them that read", async () => {
    const always = [...CONNECTION, ...CLUSTER, "client|list", "multi", "exec"];
    const commands = granted("app").filter((name) => !name.includes("|"));
    const facts = (await admin.call("COMMAND", "INFO", ...commands)) as [string, number, string[]][];
    const reading = facts.filter(([, , flags]) => flags.includes("readonly")).map(([name]) => name);
    expect(granted("viewer")).toEqual(sorted([...always, ...reading]));
  });

  it("refuses a viewer who ends a session or puts a task, with the reason", async () => {
    const connection = `redis://carillon-viewer:change-me-viewer@127.0.0.1:${redis.port}`;
    const store = new Store({ connection });
    const refused = { code: "REDIS_AUTH", remedy: expect.stringContaining("carillon-viewer") };
    expect(await store.registry.sessionHasEnded("a")).toBe(false);
    // Refused as a command, and in a script.
    await expect(store.registry.endSession("a", 1_000)).rejects.toMatchObject(refused);
    await expect(store.registry.enter("q")).rejects.toMatchObject(refused);
    await store.close();
  });

  it.each([
    ["a node", "node", ["store", "scheduler"]],
    ["an application", "app", ["store", "scheduler", "sdk"]],
  ])("grants %s the commands that our TypeScript sends", async (_who, user, packages) => {
    const commands = new Set(((await admin.call("COMMAND")) as [string][]).map(([name]) => name));
    const sent = packages.flatMap(sentBy).filter((name) => commands.has(name));
    expect(sent).toContain("hmget");
    expect(sent.filter((name) => !granted(user).includes(name))).toEqual([]);
  });

  it("grants no command that Redis calls dangerous, except two", async () => {
    const dangerous = (await admin.call("ACL", "CAT", "dangerous")) as string[];
    const all = sorted(["node", "app", "viewer"].flatMap(granted));
    // Redis 6.2 lists the permission for all commands that begin with `client`, not for each.
    expect(all).toContain("client|list");
    expect(all.filter((name) => dangerous.includes(name) && name !== "client|list")).toEqual(["info"]);
  });
});
