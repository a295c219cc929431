import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

const IDS = Array.from({ length: 30 }, (_, n) => `t${n}`);
const EMPTY = /holds no tasks/;

let folder: string;
let dump: string;
let appendonly: string;
const servers: RedisServer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-restore-"));
  const data = join(folder, "original");
  await mkdir(data);
  const original = await startRedis({ appendonly: true, config: { dir: data } });
  const client = new Client({ connection: original.url });
  await client.putMany(
    IDS.map((id, n) => ({ id, type: "noop", queue: `q${n % 3}`, schedule: { every: "1s" }, catchUp: "all" })),
  );
  await client.close();
  const redis = new Redis(original.url);
  await redis.save();
  redis.disconnect();
  dump = join(data, "dump.rdb");
  appendonly = join(data, "appendonlydir");
  await original.kill();
});
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
afterAll(() => rm(folder, { recursive: true }));

/** A server on a new data directory with these files in it. */
async function serverOn(dir: string, options: { appendonly: boolean }): Promise<RedisServer> {
  const server = await startRedis({ ...options, config: { dir } });
  servers.push(server);
  return server;
}

async function directoryWith(file: string, name: string): Promise<string> {
  const dir = await mkdtemp(join(folder, "restored-"));
  await cp(file, join(dir, name), { recursive: true });
  return dir;
}

/** Starts a node there; returns the ids of the tasks that it enqueues, and its warnings. */
async function life(server: RedisServer): Promise<{ ids: string[]; warnings: string[] }> {
  const warnings: string[] = [];
  const logger = {
    debug() {},
    info() {},
    error() {},
    warn: (_details: object, message: string) => warnings.push(message),
  };
  const client = new Client({ connection: server.url });
  const node = new Scheduler({ connection: server.url, logger });
  try {
    const tasks: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await client.list({ cursor });
      tasks.push(...page.tasks.map(({ id }) => id));
      cursor = page.cursor;
    }
    const enqueued = new Set<string>();
    node.on("decided", ({ task, outcome }) => {
      if (outcome === "enqueued") enqueued.add(task);
    });
    await node.start();
    expect(node.ready).toBe(true);
    await eventually(() => enqueued.size === tasks.length);
    return { ids: tasks.sort(), warnings };
  } finally {
    await node.stop();
    await client.close();
  }
}

test("the copy of an AOF folder holds every task", async () => {
  const server = await serverOn(await directoryWith(appendonly, "appendonlydir"), { appendonly: true });
  const { ids, warnings } = await life(server);
  expect(ids).toEqual([...IDS].sort());
  expect(warnings).not.toContainEqual(expect.stringMatching(EMPTY));
});

test("an RDB file is read without AOF; AOF turned on later is complete", async () => {
  const dir = await directoryWith(dump, "dump.rdb");
  const reading = await serverOn(dir, { appendonly: false });
  const redis = new Redis(reading.url);
  await redis.config("SET", "appendonly", "yes");
  await eventually(async () => {
    const persistence = await redis.info("persistence");
    return (
      persistence.includes("aof_rewrite_in_progress:0") &&
      persistence.includes("aof_rewrite_scheduled:0") &&
      persistence.includes("aof_last_bgrewrite_status:ok")
    );
  });
  redis.disconnect();
  await rm(join(dir, "dump.rdb"));
  await reading.kill();
  const { ids } = await life(await serverOn(dir, { appendonly: true }));
  expect(ids).toEqual([...IDS].sort());
});

test("a server with AOF ignores an RDB file and starts empty, and a node warns", async () => {
  const server = await serverOn(await directoryWith(dump, "dump.rdb"), { appendonly: true });
  const { ids, warnings } = await life(server);
  expect(ids).toEqual([]);
  expect(warnings).toContainEqual(expect.stringMatching(EMPTY));
});
