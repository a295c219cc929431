import { compileSchedule } from "@carillon/core";
import { shardOf, TaskSchedule } from "@carillon/core/internal";
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { bullVersion, Store, VERSION } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { nodeInfo, workerInfo } from "../../../../test/helpers.js";
import { examined } from "../../test/in-words.js";

const QUEUE = "bells";
const NODE = nodeInfo("n", { version: VERSION, every: 600_000, bullmq: await bullVersion() });
const WORKER = workerInfo("w", {
  every: 600_000,
  versions: { carillon: VERSION, bullmq: await bullVersion(), node: "20" },
});

let redis: RedisServer;
let store: Store;
let client: Client;
beforeAll(async () => {
  // A busy machine must not make commands slow.
  redis = await startRedis({ appendonly: true, config: { "slowlog-log-slower-than": -1 } });
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  store = new Store({ connection: redis.url });
  client = new Client({ store });
  await node("n", {});
  await worker("w", {});
  await client.put(task("healthy"));
});
afterEach(async () => {
  await admin("FLUSHALL");
  await store.close();
});

const admin = (command: string, ...args: string[]) => internalsOf(store).link.client.call(command, ...args);
const set = async (name: string, value: string, back: string): Promise<() => Promise<unknown>> => {
  await admin("CONFIG", "SET", name, value);
  return () => admin("CONFIG", "SET", name, back);
};
const node = async (id: string, more: object) =>
  store.registry.beat({ ...NODE, id, beat: await store.serverTime(), ready: true, ...more });
const worker = async (id: string, more: object) =>
  store.registry.beatWorker({
    ...WORKER,
    id,
    queues: [QUEUE],
    types: ["ring"],
    beat: await store.serverTime(),
    ...more,
  });
const task = (id: string, more: object = {}) => ({
  id,
  type: "ring",
  queue: QUEUE,
  schedule: { every: "1d" },
  ...more,
});
const keys = () => internalsOf(store).keys.queue(QUEUE);
const field = (id: string, ...fields: (string | number)[]) =>
  internalsOf(store).link.client.hset(keys().task(`system/${id}`), ...(fields as [string, string]));
const DAY = 86_400_000;

it("finds nothing on a healthy system", async () => {
  expect(await examined(client)).toEqual({
    state: "healthy",
    findings: [],
    skipped: [],
    tasks: { read: 1, of: 1 },
  });
});

it("finds that a delivery has waited for a minute", async () => {
  const queue = "carillon-alerts";
  await worker("w", { queues: [QUEUE, queue] });
  const payload = { url: "https://example.com/hook", alert: { kind: "failed" } };
  await client.put({ ...task("d"), queue, schedule: { at: Date.now() - 120_000 }, payload });
  await client.trigger({ id: "d", queue });
  const { link, keys } = internalsOf(store);
  const { bull, task: key } = keys.queue(queue);
  // It waits for its next try.
  const run = await link.client.rpop(`${bull}wait`);
  await link.client.zadd(`${bull}delayed`, 1, `${run}`);
  await link.client.hset(key("system/d"), "created", Date.now() - 120_000);
  expect((await examined(client)).findings).toMatchObject([{ code: "ALERTS_FAIL", severity: "warning" }]);
});

it("reads a part of many tasks, and says so; a bound client is refused", async () => {
  const names = Array.from({ length: 5_000 }, (_, i) => [0, `system/t${i}`]).flat();
  await internalsOf(store).link.client.zadd(keys().tasks, ...(names as [number, string]));
  const { tasks, findings } = await examined(client);
  expect(tasks).toEqual({ read: 1, of: 5_001 });
  expect(findings).toMatchObject([{ code: "ORPHAN", message: expect.stringMatching(/^999 names/) }]);
  await expect(examined(new Client({ store, owner: "acme" }))).rejects.toMatchObject({ code: "FORBIDDEN" });
});

it("finds a task that never ran behind a thousand others", async () => {
  const yesterday = new Date(Date.now() - DAY);
  const cron = `0 0 ${yesterday.getUTCDate()} ${yesterday.getUTCMonth() + 1} *`;
  await client.put(task("z", { schedule: { cron } }));
  await field("z", "created", Date.now() - 3 * DAY);
  const { client: link } = internalsOf(store).link;
  const names = (at: number) =>
    Array.from({ length: 1_000 }, (_, i) => [at, `system/t${i}`]).flat() as number[];
  await link.zadd(keys().tasks, ...names(0));
  await link.zadd(keys().dues[0] ?? "", ...names(Date.now() + 30 * DAY));
  const { findings } = await examined(client);
  expect(findings.filter(({ code }) => code === "NEVER_RAN")).toMatchObject([
    { message: expect.stringMatching(/^system\/z: /) },
  ]);
});

it("names the limit of the owner for which a task that never ran waits, as upcoming does", async () => {
  const yesterday = new Date(Date.now() - DAY);
  const cron = `0 0 ${yesterday.getUTCDate()} ${yesterday.getUTCMonth() + 1} *`;
  const ops = operatorOf(client);
  await ops.queues.limit({ queue: QUEUE, owner: "*", runs: 1 });
  for (const id of ["held", "free"]) await client.put(task(id, { owner: "lim", schedule: { cron } }));
  const { client: link } = internalsOf(store).link;
  for (const id of ["held", "free"]) {
    await link.hset(keys().task(`lim/${id}`), "created", Date.now() - 3 * DAY, "due", Date.now() - DAY);
    await link.zadd(keys().dues[shardOf(`lim/${id}`)] ?? "", Date.now() + 30_000, `lim/${id}`);
  }
  await link.zadd(keys().waiting("lim"), Date.now() - DAY, `${shardOf("lim/held")} lim/held`);
  const { findings } = await examined(client);
  const never = findings.flatMap(({ code, message }) => (code === "NEVER_RAN" ? [message] : []));
  expect(never.sort()).toEqual([
    expect.stringMatching(/^lim\/free: .* and it never ran\.$/),
    expect.stringMatching(/^lim\/held: .* never ran: held by the limit of 1 run of owner lim\.$/),
  ]);
  const { upcoming } = await ops.occurrences.upcoming({ limit: 2 });
  expect(upcoming.map(({ task, limit }) => [task.id, limit]).sort()).toEqual([
    ["free", undefined],
    ["held", 1],
  ]);
});

it("finds that Redis is a replica; on its master nothing, also when it has left: a backup by redis-cli --rdb leaves the same traces", async () => {
  await admin("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  const replica = await startRedis({ config: { replicaof: ["127.0.0.1", redis.port] } });
  const replication = (states: string[]) =>
    eventually(async () =>
      expect((await store.info())[0]?.replicas.map(({ state }) => state)).toEqual(states),
    );
  await replication(["online"]);
  const other = new Client({ connection: replica.url });
  await eventually(async () =>
    expect((await examined(other)).findings).toMatchObject([
      { code: "REDIS_READ_ONLY", severity: "error" },
      { code: "AOF_OFF" },
      { code: "REPLICA", severity: "error" },
    ]),
  );
  await other.close();
  expect((await examined(client)).findings).toEqual([]);
  await replica.stop();
  await replication([]);
  expect((await examined(client)).findings).toEqual([]);
});

it("names the settings that Redis does not show, and does without its slow commands", async () => {
  const { link } = internalsOf(store);
  const { info } = link.client;
  // As managed servers do.
  vi.spyOn(link.client, "info").mockImplementation(async () =>
    (await info.call(link.client)).replace(/^(aof_enabled|maxmemory_policy|maxmemory):.*$/gm, ""),
  );
  await admin("ACL", "SETUSER", "default", "-slowlog");
  try {
    const { state, findings, skipped } = await examined(client);
    expect(state).toBe("warnings");
    expect(findings).toMatchObject([
      {
        code: "UNKNOWN_SETTINGS",
        message: "Redis does not show appendonly and maxmemory-policy.",
        remedy: expect.stringContaining("provider"),
      },
    ]);
    expect(skipped).toEqual([
      expect.stringMatching(/^slow commands: .*slowlog/),
      "Redis' memory: INFO does not show it",
    ]);
    vi.spyOn(link.client, "info").mockRejectedValue(
      new Error("NOPERM no permissions to run the 'info' command"),
    );
    expect(await examined(client)).toMatchObject({
      state: "warnings",
      findings: [{ code: "UNKNOWN_SETTINGS" }],
      skipped: expect.arrayContaining([expect.stringMatching(/^Redis' settings: .*info/)]),
    });
  } finally {
    await admin("ACL", "SETUSER", "default", "+slowlog");
    vi.restoreAllMocks();
  }
});

it("reads the slow commands without their arguments", async () => {
  const back = await set("slowlog-log-slower-than", "0", "-1");
  await admin("ECHO", "secret");
  await back();
  const commands = await store.slowCommands();
  expect(commands).toContainEqual({
    command: "ECHO",
    client: expect.stringMatching(/^127\.0\.0\.1:\d+ carillon$/),
    ours: true,
    at: expect.any(Number),
    tookMs: expect.any(Number),
  });
  expect(JSON.stringify(commands)).not.toContain("secret");
});

it("names the slow command and its client", async () => {
  await node("n", { roundTrip: 300 });
  const at = await store.serverTime();
  const slow = {
    at: at - 20_000,
    tookMs: 2_000,
    command: "KEYS",
    client: "10.0.0.3:4444 reports",
    ours: false,
  };
  vi.spyOn(store, "slowCommands").mockResolvedValue([slow, { ...slow, tookMs: 900 }]);
  const { findings } = await examined(client);
  expect(findings).toMatchObject([{ code: "SLOW_REDIS" }]);
  expect(findings[0]?.message).toMatch(
    /^Redis takes 300 ms to answer the nearest node, so that each claim is late; KEYS of 10\.0\.0\.3:4444 reports held it for 2 s, 2\d s ago\.$/,
  );
  vi.restoreAllMocks();
});

it("names a script of its own that was slow for a minute, and blames the host", async () => {
  const at = await store.serverTime();
  const slow = { tookMs: 1_100, command: "EVALSHA", client: "127.0.0.1:36062 carillon", ours: true };
  vi.spyOn(store, "slowCommands").mockResolvedValue([{ ...slow, at: at - 20_000 }]);
  const { findings } = await examined(client);
  expect(findings).toMatchObject([{ code: "SLOW_REDIS", remedy: "See the CPU and the swap of that host." }]);
  expect(findings[0]?.message).toMatch(
    /^Redis stood still: one of Carillon's scripts took 1\.1 s, 2\d s ago\.$/,
  );
  vi.spyOn(store, "slowCommands").mockResolvedValue([{ ...slow, at: at - 61_000 }]);
  expect((await examined(client)).findings).toEqual([]);
  vi.restoreAllMocks();
});

it("names a replica that does not answer, before Redis refuses writes", async () => {
  const { link } = internalsOf(store);
  const { info } = link.client;
  const replica = async (fields: string) => {
    const text = await info.call(link.client);
    vi.spyOn(link.client, "info").mockResolvedValue(`${text}\r\nslave0:ip=10.0.0.2,port=6379,${fields}\r\n`);
    const { findings } = await examined(client);
    return findings.map(({ code, severity, message }) => `${severity} ${code} ${message}`);
  };
  expect(await replica("state=online,offset=4711,lag=1")).toEqual([]);
  expect(await replica("state=online,offset=4711,lag=15")).toEqual([
    "warning REPLICA The replica slave0 has not answered for 15 s.",
  ]);
  expect(await replica("state=wait_bgsave,offset=0,lag=0")).toEqual([
    "warning REPLICA The replica slave0 is in state wait_bgsave.",
  ]);
  vi.restoreAllMocks();
});

it("says nothing of a task whose first time has passed, and is not due yet because of its jitter", async () => {
  const origin = (await store.serverTime()) - 180_000;
  const schedule = { every: "1d", origin: new Date(origin).toISOString(), jitter: "23h" } as const;
  const due = (id: string) =>
    new TaskSchedule({ owner: "system", id, schedule }, compileSchedule(schedule, id)).due(origin);
  const id =
    Array.from({ length: 100 }, (_, i) => `j${i}`).find((one) => due(one) > origin + 3_600_000) ?? "";
  await client.put(task(id, { schedule }));
  await field(id, "created", origin - 1);
  expect((await examined(client)).findings).toEqual([]);
});

it("names a type without worker also in a queue that is paused", async () => {
  await client.put(task("a", { type: "unknown" }));
  await operatorOf(client).queues.pause({ queue: QUEUE });
  const { findings } = await examined(client);
  expect(findings.map(({ code }) => code)).toEqual(["TYPE_UNHANDLED", "QUEUE_PAUSED"]);
});

it("names a queue without worker once, whatever types it has", async () => {
  await client.putMany(["a", "b"].map((type) => task(type, { type, queue: "other" })));
  const { findings } = await examined(client);
  expect(findings).toMatchObject([{ code: "NO_WORKER", queue: "other" }]);
});
