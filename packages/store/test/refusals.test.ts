import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTask } from "@carillon/core";
import { bullPrefix, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, freePort, type RedisServer, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Bench, ENTERED, QUEUE, START } from "./bench.js";

describe("a Redis that refuses", () => {
  let dir: string;
  let redis: RedisServer;
  let admin: Redis;
  const bench = Bench.use(() => redis.url);
  beforeAll(async () => {
    // A folder at the path of the snapshot makes it fail.
    dir = await mkdtemp(join(tmpdir(), "carillon-"));
    await mkdir(join(dir, "dump.rdb"));
    redis = await startRedis({ appendonly: true, config: { dir } });
    admin = new Redis(redis.url);
  });
  afterAll(async () => {
    admin.disconnect();
    await redis.stop();
    await rm(dir, { recursive: true });
  });

  describe("because it is out of memory", () => {
    afterEach(async () => {
      await admin.config("SET", "maxmemory", "0");
    });

    it("fails a put with the code and no changed key, then works again", async () => {
      await bench.put({ id: "there" });
      const before = await bench.dump();
      await admin.config("SET", "maxmemory", "1");
      const full = { code: "REDIS_OUT_OF_MEMORY", remedy: expect.stringContaining("maxmemory") };
      await expect(bench.put({ id: "new" })).rejects.toMatchObject(full);
      await expect(bench.put({ id: "there", priority: 1 })).rejects.toMatchObject(full);
      await expect(bench.store.tasks.pause(bench.name("there"))).rejects.toMatchObject(full);
      await expect(bench.trigger("there", "a")).rejects.toMatchObject(full);
      const once = parseTask({ id: "once", type: "noop", queue: QUEUE, schedule: { at: START } });
      const by = { key: "k", token: "b", node: "test" };
      await expect(bench.store.claims.enqueueNow(once, by, ENTERED)).rejects.toMatchObject(full);
      expect(await bench.dump()).toEqual(before);
      await admin.config("SET", "maxmemory", "0");
      expect(await bench.put({ id: "new" })).toMatchObject({ outcome: "created" });
    });

    it.each([0, 5])(
      "fails the claim of a batch (priority %d) as a whole, and loses no occurrence",
      async (priority) => {
        // All tasks are in one shard, and so in one batch; one of them would skip.
        const ids = sameShard(4);
        for (const id of ids) await bench.put({ id, priority });
        await bench.clock.advance(10_000);
        await bench.claim(ids[0] as string, "first");
        await bench.put({ id: ids[3] as string, priority, tags: ["changed"] });
        await bench.clock.advance(10_000);
        const half = await bench.read(ids[0] as string);
        expect(half.items).toHaveLength(4);
        const before = await bench.dump();
        for (const items of [half.items, half.items.slice(1), half.items.slice(0, 1)]) {
          await admin.config("SET", "maxmemory", "1");
          const outcome = await bench.commit({ ...half, items }, "a").catch((error: unknown) => error);
          await admin.config("SET", "maxmemory", "0");
          expect(refusal(outcome)).toBe(true);
          expect(await bench.dump()).toEqual(before);
        }
        expect(await bench.commit(half, "b")).toEqual(["OK", "OK", "OK", "OK"]);
      },
    );

    function refusal(outcome: unknown): boolean {
      if (Array.isArray(outcome)) return outcome.every((status) => /^ERROR .*OOM/.test(String(status)));
      return (outcome as { code?: string }).code === "REDIS_OUT_OF_MEMORY";
    }
  });

  it("fails to take a mutex with an error, not as if another held it", async () => {
    const { mutex } = internalsOf(bench.store);
    const key = internalsOf(bench.store).keys.queue(QUEUE).mutex("0");
    await admin.config("SET", "min-replicas-to-write", "1");
    await expect(mutex.take(key, 5_000)).rejects.toThrow("NOREPLICAS");
    await expect(bench.store.registry.assertWritable()).rejects.toMatchObject({ code: "REDIS_UNAVAILABLE" });
    await admin.config("SET", "min-replicas-to-write", "0");
    const lease = await mutex.take(key, 5_000);
    expect(await mutex.take(key, 5_000)).toBeUndefined();
    await lease?.release();
  });

  it("fails one BullMQ add half-way without a job left, and completes the others of its batch", async () => {
    const ids = sameShard(2);
    await bench.put({ id: ids[0] as string, priority: 1 });
    await bench.put({ id: ids[1] as string });
    await bench.clock.advance(10_000);
    // A key of the wrong type makes the very last step of the prioritized add fail.
    const prioritized = `${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:prioritized`;
    await admin.set(prioritized, "in the way");
    const half = await bench.read(ids[0] as string);
    const before = await bench.stored(ids[0] as string);
    const statuses = await bench.commit(half, "a");
    const of = (id: string) => statuses[half.items.findIndex(({ entry }) => entry.local === `system/${id}`)];
    expect(of(ids[0] as string)).toMatch(/^ERROR .*WRONGTYPE/);
    expect(of(ids[1] as string)).toBe("OK");
    expect(await bench.stored(ids[0] as string)).toEqual(before);
    const jobs = await admin.keys(`${bullPrefix(bench.store.namespace, QUEUE)}:${QUEUE}:*@*`);
    expect(jobs).toHaveLength(1);
    // A manual trigger fails with the same error.
    const failed = { code: "REDIS_ERROR", message: expect.stringContaining("WRONGTYPE") };
    await expect(bench.trigger(ids[0] as string, "m")).rejects.toMatchObject(failed);
    const schedule = { at: START };
    const once = parseTask({ id: "once", type: "noop", queue: QUEUE, schedule, priority: 1 });
    const by = { key: "k", token: "o", node: "test" };
    await expect(bench.store.claims.enqueueNow(once, by, ENTERED)).rejects.toMatchObject(failed);
    expect(await bench.stored("once")).toBeUndefined();
    await admin.del(prioritized);
    expect(await bench.claim(ids[0] as string, "b")).toEqual(["OK"]);
    expect(await bench.jobs()).toHaveLength(2);
  });

  it("as a read-only replica gives the code, serves reads, and takes writes when it is the master again", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(10_000);
    const half = await bench.read("t");
    const before = await bench.dump();
    await admin.call("REPLICAOF", "127.0.0.1", await freePort());
    try {
      const readOnly = { code: "REDIS_READ_ONLY", remedy: expect.stringContaining("master") };
      await expect(bench.put({ id: "new" })).rejects.toMatchObject(readOnly);
      await expect(bench.commit(half, "a")).rejects.toMatchObject(readOnly);
      await expect(bench.trigger("t", "m")).rejects.toMatchObject(readOnly);
      await expect(bench.store.tasks.delete(bench.name("t"))).rejects.toMatchObject(readOnly);
      expect(await bench.stored("t")).toMatchObject({ due: START + 10_000 });
    } finally {
      await admin.call("REPLICAOF", "NO", "ONE");
    }
    expect(await bench.dump()).toEqual(before);
    expect(await bench.commit(half, "a")).toEqual(["OK"]);
    expect(await bench.jobs()).toHaveLength(1);
  });

  it("with a full disk gives the code, serves reads, and changes no key", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(10_000);
    const half = await bench.read("t");
    const before = await bench.dump();
    await admin.config("SET", "save", "900 1");
    await admin.bgsave();
    await eventually(async () => expect(await admin.info()).toContain("rdb_last_bgsave_status:err"));
    try {
      const full = { code: "REDIS_UNAVAILABLE", message: expect.stringContaining("its disk") };
      await expect(bench.put({ id: "new" })).rejects.toMatchObject(full);
      await expect(bench.store.tasks.delete(bench.name("t"))).rejects.toMatchObject(full);
      expect(await bench.stored("t")).toMatchObject({ due: START + 10_000 });
      expect(await bench.dump()).toEqual(before);
    } finally {
      await admin.config("SET", "save", "");
    }
    expect(await bench.commit(half, "a")).toEqual(["OK"]);
  });

  it("with a foreign script that does not end gives the code, and completes a waiting claim once", async () => {
    await bench.put({ id: "t" });
    await bench.clock.advance(10_000);
    const half = await bench.read("t");
    await admin.config("SET", "lua-time-limit", "1");
    const endless = new Redis(redis.url);
    const ended = endless.eval("while true do end", 0).catch((error: unknown) => error);
    try {
      await eventually(async () => expect(await admin.ping().catch(String)).toContain("BUSY"));
      const busy = { code: "REDIS_UNAVAILABLE", remedy: expect.stringContaining("SCRIPT KILL") };
      await expect(bench.put({ id: "new" })).rejects.toMatchObject(busy);
      await expect(bench.commit(half, "a")).rejects.toMatchObject(busy);
    } finally {
      await admin.call("SCRIPT", "KILL");
      await ended;
      endless.disconnect();
    }
    expect(await bench.commit(half, "a")).toEqual(["OK"]);
    expect(await bench.jobs()).toHaveLength(1);
  });

  it("with all connections taken gives the code, and continues with the next free one", async () => {
    await admin.config("SET", "maxclients", "2");
    const late = new Store({ connection: redis.url, readyTimeout: 500 });
    try {
      // Several attempts, because a connection may close before its error message arrives.
      const refused = await eventually(async () => {
        const error = await late.serverTime().then(
          () => undefined,
          (error) => error,
        );
        return error?.remedy?.includes("maxclients") && error;
      });
      expect(refused).toMatchObject({ code: "REDIS_UNAVAILABLE" });
    } finally {
      await admin.config("SET", "maxclients", "10000");
    }
    expect(await eventually(() => late.serverTime())).toBeGreaterThan(0);
    await late.close();
  });

  /** Ids of tasks that share a shard. */
  function sameShard(count: number): string[] {
    // FNV-1a mod 8 depends on the last three bits only, so every eighth letter gives the same shard.
    const ids = ["a", "i", "q", "y"].map((letter) => `batch-${letter}`);
    return ids.slice(0, count);
  }
});

describe("a Redis with a password", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ config: { requirepass: "s3cret" } });
  });
  afterAll(async () => {
    await redis.stop();
  });
  const url = (credentials: string) => redis.url.replace("redis://", `redis://${credentials}`);
  const task = parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" } });

  it.each([
    ["none", ""],
    ["a wrong one", ":wrong@"],
    ["an unknown user", "nobody:s3cret@"],
  ])("with %s gives the code in time, without the password in the message", async (_what, credentials) => {
    const store = new Store({ connection: url(credentials), readyTimeout: 500 });
    try {
      const error = await store.tasks.put(QUEUE, [task]).catch((failure: unknown) => failure);
      expect(error).toMatchObject({ code: "REDIS_AUTH", remedy: expect.stringContaining("password") });
      expect(String(error)).not.toContain("s3cret");
    } finally {
      await store.close();
    }
  });

  it("with the right one works", async () => {
    const store = new Store({ connection: url(":s3cret@") });
    expect(await store.tasks.put(QUEUE, [task])).toMatchObject([{ outcome: "created" }]);
    await store.close();
  });
});

describe("a Redis that is down", () => {
  const task = parseTask({ id: "t", type: "noop", queue: QUEUE, schedule: { every: "10s" } });

  it("fails a call with the code within its time, and serves the next one once it runs", async () => {
    const port = await freePort();
    const heard: string[] = [];
    const store = new Store({
      connection: `redis://127.0.0.1:${port}`,
      readyTimeout: 300,
      onError: ({ code }) => heard.push(code),
    });
    const begun = performance.now();
    await expect(store.tasks.put(QUEUE, [task])).rejects.toMatchObject({
      code: "REDIS_UNAVAILABLE",
      remedy: expect.any(String),
    });
    expect(performance.now() - begun).toBeLessThan(4_500);
    expect(new Set(heard)).toEqual(new Set(["REDIS_UNAVAILABLE"]));
    const redis = await startRedis({ port });
    const patient = new Store({ connection: redis.url });
    expect(await patient.tasks.put(QUEUE, [task])).toMatchObject([{ outcome: "created" }]);
    // The first store has reconnected on its own.
    await eventually(() => store.ready);
    expect(await store.tasks.put(QUEUE, [task])).toMatchObject([{ outcome: "unchanged" }]);
    await Promise.all([store.close(), patient.close()]);
    await redis.stop();
  });

  it("fails a waiting call at the close", async () => {
    const store = new Store({ connection: `redis://127.0.0.1:${await freePort()}`, readyTimeout: 60_000 });
    const call = store.serverTime().catch((error: unknown) => error);
    await store.close();
    expect(await call).toMatchObject({ code: "REDIS_UNAVAILABLE" });
  });

  it("keeps every answered put once if it is killed under load", async () => {
    const redis = await startRedis({ appendonly: true, config: { appendfsync: "always" } });
    const store = new Store({ connection: redis.url, readyTimeout: 10_000 });
    const answered: string[] = [];
    const puts = Array.from({ length: 40 }, async (_, i) => {
      const one = parseTask({ id: `t${i}`, type: "noop", queue: QUEUE, schedule: { every: "1h" } });
      await store.tasks.put(QUEUE, [one]);
      answered.push(`t${i}`);
      if (answered.length === 5) await redis.kill().then(() => redis.start());
    });
    await Promise.all(puts);
    expect(answered).toHaveLength(40);
    const { tasks } = await store.tasks.list({}, 1_000);
    expect(tasks.map(({ definition }) => definition.id).sort()).toEqual(answered.sort());
    expect(tasks.map(({ updated, created }) => updated - created)).toEqual(new Array(40).fill(0));
    await store.close();
    await redis.stop();
  });
});
