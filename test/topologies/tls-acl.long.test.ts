import { readFile } from "node:fs/promises";
import { Client, readEnvironment } from "@carillon/sdk";
import { eventually, tlsFiles } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ownRedis } from "../helpers.js";
import { PATIENCE, Program } from "../seeds/harness.js";
import { openConsole, Site, TASK } from "./site.js";

const ACL = new URL("../../deploy/redis/carillon.acl", import.meta.url);
const { ca, cert, key } = tlsFiles();
const TLS = { REDIS_TLS_CA_FILE: ca, REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key };

const redis = ownRedis({ tls: true, appendonly: true, acl: await readFile(ACL, "utf8") });
let admin: Redis;

/** A connection as one of the users of the ACL file. */
function as(user: string): Redis {
  const client = new Redis({
    port: redis.port,
    username: `carillon-${user}`,
    password: `change-me-${user}`,
    ...(redis.tls ? { tls: redis.tls } : {}),
    disableClientInfo: true,
  });
  client.on("error", () => {});
  return client;
}

const env = (user: string, password = `change-me-${user}`) => ({
  REDIS_URL: `rediss://carillon-${user}:${password}@127.0.0.1:${redis.port}`,
  ...TLS,
});

/** Refusals since the last `ACL LOG RESET`: user, reason and object of each. */
async function refused(): Promise<unknown[]> {
  const log = (await admin.call("ACL", "LOG")) as unknown[][];
  const field = (entry: unknown[], name: string) => entry[entry.indexOf(name) + 1];
  return log.map((entry) => ["username", "reason", "object"].map((name) => field(entry, name)));
}

beforeAll(async () => {
  admin = as("admin");
});
beforeEach(() => admin.call("ACL", "LOG", "RESET"));
afterAll(async () => {
  admin.disconnect();
});

test("TLS with a client certificate, and the users of the ACL file: no needed command is refused", async () => {
  const site = await Site.open({ node: env("node"), app: env("app") });
  const board = openConsole(env("viewer"));
  try {
    await site.story(async () => {
      const { type, payload } = TASK;
      await site.client.put({ id: "seen", type, queue: "bells", schedule: { every: "1h" }, payload });
      // A user with read access can read.
      expect(await site.cli(["list"], "", env("viewer"))).toMatchObject({
        tasks: [{ id: "bell" }, { id: "seen" }],
      });
      expect(await site.cli(["runs", "bell"], "", env("viewer"))).toMatchObject({
        runs: expect.arrayContaining([expect.objectContaining({ id: expect.any(String) })]),
      });
      expect(await site.cli(["nodes"], "", env("viewer"))).toMatchObject({ nodes: [{ alive: true }] });
      // The board looks for new queues from time to time.
      await eventually(async () => {
        expect(await site.console("/queues/api/queues?activeQueue=bells", board)).toMatchObject({
          queues: [{ name: "bells" }],
        });
      }, PATIENCE);
      await site.client.delete({ id: "seen" });
    });
    // The viewer's console has tried once whether it may write.
    expect(await refused()).toEqual([["carillon-viewer", "command", "zadd"]]);

    const { code, stderr } = await site.tryCli(["put"], JSON.stringify(TASK), env("viewer"));
    expect({ code, stderr: JSON.parse(stderr) }).toMatchObject({
      code: 4,
      stderr: { error: { code: "REDIS_AUTH" } },
    });
  } finally {
    await board.kill();
    await site.close();
  }
});

describe.each(["node", "app", "viewer"])("carillon-%s", (user) => {
  let client: Redis;
  beforeAll(() => {
    client = as(user);
  });
  afterAll(() => client.disconnect());

  test.each([
    ["get", "bell"],
    ["get", "{bell}:queues"],
    ["hgetall", "{carillon-2}:queues"],
    ["hgetall", "{carillon-2:bells}:~t:system/bell"],
    ["evalsha", "0".repeat(40), "1", "{bell:bells}:~tasks"],
    ["eval", "return redis.call('get', KEYS[1])", "1", "bell"],
    ["eval", "return redis.call('flushall')", "0"],
    ["subscribe", "{bell}:wake"],
    ["subscribe", "__keyevent@0__:set"],
    ["publish", "{bell}:wake", "bells 0 0"],
    ["keys", "*"],
    ["scan", "0"],
    ["flushall"],
    ["flushdb"],
    ["swapdb", "0", "1"],
    ["config", "get", "*"],
    ["config", "set", "appendonly", "no"],
    ["acl", "list"],
    ["client", "kill", "type", "normal"],
    ["client", "pause", "1000"],
    ["shutdown"],
    ["replicaof", "no", "one"],
    ["script", "flush"],
    ["function", "list"],
    ["module", "list"],
    ["monitor"],
    ["migrate", "127.0.0.1", "1", "{carillon}:queues", "0", "1"],
    ["restore", "{carillon}:queues", "0", "x"],
    ["cluster", "reset"],
  ])("must not: %s %s %s", async (...command) => {
    const [name = "", ...args] = command;
    await expect(client.call(name, ...args)).rejects.toThrow(
      // Redis 6.2 has no functions.
      /NOPERM|No permission|can't run this command|can't access|unknown command .function/i,
    );
  });
});

test("another namespace is refused with a coded error", async () => {
  const client = new Client({ ...readEnvironment(env("app")), namespace: "carillon-2" });
  await expect(client.list()).rejects.toMatchObject({ code: "REDIS_AUTH" });
  await client.close();
});

test("a wrong password is reported, and never printed", async () => {
  const wrong = env("node", "hunter2");
  const programs = [
    new Program("apps/scheduler/bin/carillon-scheduler.js", [], { CARILLON_PORT: "0", ...wrong }),
    new Program("apps/console/bin/carillon-console.js", [], {
      CARILLON_CONSOLE_PORT: "0",
      CARILLON_TOKEN: "a-token-for-this-test",
      ...wrong,
    }),
  ];
  const [node] = programs as [Program];
  await eventually(() => {
    const told = programs.map(({ said }) => JSON.stringify(said).includes("WRONGPASS"));
    expect(told).toEqual([true, true]);
  }, PATIENCE);
  const { stderr } = await new Program("apps/cli/bin/carillon.js", ["list"], wrong).toItsEnd();
  expect(stderr).toContain("REDIS_AUTH");
  for (const program of programs) program.signal("SIGTERM");
  const ends = await Promise.all(programs.map(({ ended }) => ended));
  const all = [stderr, ...ends.flatMap((end) => [end.stdout, end.stderr])].join("\n");
  expect(all).not.toContain("hunter2");
  expect(node.said.length).toBeGreaterThan(0);
});
