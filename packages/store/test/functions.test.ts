import { Scheduler } from "@carillon/scheduler";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { REDIS_TIME, Store } from "@carillon/store";
import { internalsOf, withSeams } from "@carillon/store/internal";
import { eventually, startFaultProxy, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { emptied, ownRedis, SILENT } from "../../../test/helpers.js";
import { Bench, QUEUE } from "./bench.js";

/** Calls of a command, and those that it refused: of a function that Redis lacks, too. */
async function callsOf(admin: Redis, command: string): Promise<{ calls: number; failed: number }> {
  const line = new RegExp(`cmdstat_${command}:calls=(\\d+).*failed_calls=(\\d+)`).exec(
    await admin.info("commandstats"),
  );
  return { calls: Number(line?.[1] ?? 0), failed: Number(line?.[2] ?? 0) };
}

async function librariesOf(admin: Redis): Promise<string[]> {
  const libraries = (await admin.function("LIST")) as string[][];
  return libraries.map(([, name]) => `${name}`).sort();
}

/** Claims the task's next occurrence. */
async function claimed(bench: Bench, token: string): Promise<string[]> {
  await bench.clock.advance(10_000);
  return bench.claim("t", token);
}

describe("scripts as functions", () => {
  // Nobody else loads functions there.
  const redis = ownRedis({ appendonly: true });
  let admin: Redis;
  let bench: Bench;
  beforeEach(async () => {
    admin = new Redis(redis.url);
    await admin.function("FLUSH");
    bench = await Bench.open(redis.url);
    await bench.put({ id: "t" });
    await admin.config("RESETSTAT");
  });
  afterEach(async () => {
    await bench.close();
    await admin.function("FLUSH");
    admin.disconnect();
  });

  it("are loaded when Redis lacks them, then called", async () => {
    expect(await claimed(bench, "a")).toEqual(["OK"]);
    expect(await librariesOf(admin)).toEqual([
      expect.stringMatching(/^carillon_commit_[0-9a-f]{12}$/),
      expect.stringMatching(/^carillon_read_due_[0-9a-f]{12}$/),
    ]);
    expect(await claimed(bench, "b")).toEqual(["OK"]);
    expect(await callsOf(admin, "fcall")).toEqual({ calls: 6, failed: 2 });
    expect(await callsOf(admin, "evalsha")).toMatchObject({ calls: 0 });
  });

  it("are loaded once for calls at one instant after FUNCTION FLUSH", async () => {
    await claimed(bench, "a");
    await admin.function("FLUSH");
    await admin.config("RESETSTAT");
    await bench.clock.advance(10_000);
    const reads = await Promise.all(Array.from({ length: 100 }, () => bench.read("t")));
    expect(reads.map(({ items }) => items.length)).toEqual(reads.map(() => 1));
    expect(await callsOf(admin, "fcall")).toEqual({ calls: 200, failed: 100 });
    expect(await callsOf(admin, "function\\|load")).toEqual({ calls: 1, failed: 0 });
  });

  it("are loaded by one of several clients; the others find them there", async () => {
    const stores = Array.from({ length: 5 }, () => new Store({ connection: redis.url }));
    try {
      await Promise.all(stores.map((store) => store.claims.readDue(QUEUE, 0, 1)));
      await Promise.all(stores.map((store) => store.claims.readDue(QUEUE, 0, 1)));
      const loads = await callsOf(admin, "function\\|load");
      expect(loads.calls - loads.failed).toBe(1);
      expect(await callsOf(admin, "evalsha")).toMatchObject({ calls: 0 });
    } finally {
      for (const store of stores) await store.close();
    }
  });

  it("that are flushed between load and call are not tried again for a while", async () => {
    const { client } = internalsOf(bench.store).link;
    const load = client.function as (...args: unknown[]) => Promise<unknown>;
    const flushed = async (...args: unknown[]) => {
      const answer = await load.apply(client, args);
      await admin.function("FLUSH");
      return answer;
    };
    Object.assign(client, { function: flushed });
    for (const token of ["a", "b", "c"]) expect(await claimed(bench, token)).toEqual(["OK"]);
    expect(await callsOf(admin, "fcall")).toEqual({ calls: 2, failed: 2 });
    expect(await callsOf(admin, "function\\|load")).toMatchObject({ calls: 1 });
  });

  it("whose load gets no answer fail with REDIS_UNAVAILABLE, and are loaded after the connection is back", async () => {
    const proxy = await startFaultProxy(redis);
    const store = new Store({ connection: proxy.url, retries: 0 });
    try {
      await store.serverTime();
      const arrived = proxy.withhold("question", "function");
      const silent = Promise.allSettled([1, 2].map(() => store.claims.readDue(QUEUE, 0, 1)));
      await arrived;
      proxy.cut();
      for (const end of await silent)
        expect(end).toMatchObject({ status: "rejected", reason: { code: "REDIS_UNAVAILABLE" } });
      await eventually(() => store.claims.readDue(QUEUE, 0, 1));
      expect(await librariesOf(admin)).toHaveLength(1);
    } finally {
      await store.close();
      await proxy.close();
    }
  });

  it.each(["fcall", "function"])("do once what they do if the answer to a %s is lost", async (command) => {
    const proxy = await startFaultProxy(redis);
    const other = await Bench.open(proxy.url);
    try {
      await other.put({ id: "t" });
      const lost = proxy.loseAnswerTo(command);
      expect(await claimed(other, "a")).toEqual(["OK"]);
      await lost;
      expect(await other.store.runs.list(other.name("t"), 10)).toHaveLength(1);
    } finally {
      await other.close();
      await proxy.close();
    }
  });

  it("of two versions live side by side", async () => {
    const time = { lua: `${REDIS_TIME.lua}\nlocal VERSION = 2` };
    const stores = [{}, { time }].map((seams) => new Store(withSeams({ connection: redis.url }, seams)));
    try {
      for (const store of [...stores, ...stores]) await store.claims.readDue(QUEUE, 0, 1);
      expect(await librariesOf(admin)).toHaveLength(2);
      expect(await callsOf(admin, "fcall")).toEqual({ calls: 6, failed: 2 });
    } finally {
      for (const store of stores) await store.close();
    }
  });

  it("are loaded again under load: a node and a worker lose no occurrence to FUNCTION FLUSH", async () => {
    const connection = redis.url;
    const namespace = "flushed";
    const seen: string[] = [];
    const ring = defineTask("ring", {
      queue: QUEUE,
      payload: z.object({}),
      handler: async (_, { idempotencyKey }) => void seen.push(idempotencyKey),
    });
    const node = new Scheduler({ connection, namespace, logger: SILENT });
    const worker = new Worker({ connection, namespace, types: [ring], logger: SILENT });
    const client = new Client({ connection, namespace });
    const store = new Store({ connection, namespace });
    try {
      await Promise.all([node.start(), worker.start()]);
      await client.put({ id: "t", type: "ring", queue: QUEUE, schedule: { every: "100ms" }, payload: {} });
      for (let flushes = 1; flushes <= 5; flushes++) {
        await eventually(() => expect(seen.length).toBeGreaterThan(3 * flushes));
        await admin.function("FLUSH");
      }
      await eventually(() => expect(seen.length).toBeGreaterThan(20));
      await client.pause({ queue: QUEUE, id: "t" });
      await eventually(async () => {
        const runs = await store.runs.list({ queue: QUEUE, owner: "system", id: "t" }, 1_000);
        expect(runs.map(({ key }) => key).sort()).toEqual([...seen].sort());
        expect(new Set(runs.map(({ outcome }) => outcome))).toEqual(new Set(["succeeded"]));
      });
      expect(new Set(seen).size).toBe(seen.length);
    } finally {
      await worker.stop();
      await node.stop();
      await client.close();
      await store.close();
    }
  });
});

describe("scripts are sent as scripts", () => {
  const redis = ownRedis();
  const RIGHTS = {
    "to a user who may not call functions": ["-fcall"],
    "to a user who may not load functions": ["-function"],
    "to a user who may do neither": ["-fcall", "-function"],
  };

  it.each(Object.entries(RIGHTS))("%s", async (_, rights) => {
    const admin = new Redis(redis.url);
    await admin.function("FLUSH");
    await admin.call("ACL", "SETUSER", "poor", "reset", "on", ">p", "~*", "&*", "+@all", ...rights);
    const bench = await Bench.open(`redis://poor:p@127.0.0.1:${redis.port}`);
    const reasons: string[] = [];
    bench.store.watch({
      lost() {},
      back() {},
      functionsRefused: ({ message }) => reasons.push(message),
    });
    await admin.config("RESETSTAT");
    try {
      await bench.put({ id: "t" });
      for (const token of ["a", "b", "c"]) expect(await claimed(bench, token)).toEqual(["OK"]);
      // It is asked once, and not for each call.
      expect((await callsOf(admin, "fcall")).calls).toBeLessThanOrEqual(1);
      expect(await librariesOf(admin)).toEqual([]);
      expect(reasons).toEqual([expect.stringContaining("no permissions")]);
    } finally {
      await bench.close();
      admin.disconnect();
    }
  });

  const UNKNOWN = {
    "to a server that knows no functions": ["fcall", "function"],
    "to a server that cannot call functions": ["fcall"],
    "to a server that cannot load functions": ["function"],
  };
  it.each(Object.entries(UNKNOWN))("%s, and the node logs it once", async (_, commands) => {
    const renamed = commands.flatMap((command) => ["--rename-command", command, ""]).slice(1);
    const server = await startRedis({ appendonly: true, config: { "rename-command": renamed } });
    const connection = server.url;
    const namespace = "old";
    const lines: string[] = [];
    const seen: string[] = [];
    const logger = { ...SILENT, info: (_: object, message: string) => void lines.push(message) };
    const ring = defineTask("ring", {
      queue: QUEUE,
      payload: z.object({}),
      handler: async (_, { idempotencyKey }) => void seen.push(idempotencyKey),
    });
    const node = new Scheduler({ connection, namespace, logger });
    const worker = new Worker({ connection, namespace, types: [ring], logger: SILENT });
    const client = new Client({ connection, namespace });
    try {
      await Promise.all([node.start(), worker.start()]);
      await client.put({ id: "t", type: "ring", queue: QUEUE, schedule: { every: "100ms" }, payload: {} });
      await eventually(() => expect(seen.length).toBeGreaterThan(3));
      expect(lines.filter((line) => line.includes("functions"))).toHaveLength(1);
    } finally {
      await worker.stop();
      await node.stop();
      await client.close();
      await server.stop();
    }
  });

  it("to a server that refuses functions in words of its own", async () => {
    const bench = await Bench.open(redis.url);
    const fcall = () => Promise.reject(new Error("ERR not in your plan"));
    Object.assign(internalsOf(bench.store).link.client, { fcall });
    try {
      await bench.put({ id: "t" });
      for (const token of ["a", "b"]) expect(await claimed(bench, token)).toEqual(["OK"]);
    } finally {
      await bench.close();
    }
  });

  it("to a server whose memory is full, which loads no functions", async () => {
    const admin = new Redis(redis.url);
    const store = new Store({ connection: redis.url, namespace: "full" });
    await admin.function("FLUSH");
    await admin.config("SET", "maxmemory", "1");
    try {
      await store.claims.readDue(QUEUE, 0, 1);
      expect(await librariesOf(admin)).toEqual([]);
    } finally {
      await admin.config("SET", "maxmemory", "0");
      await store.close();
      admin.disconnect();
    }
  });
});

describe("functions that a master lacks", () => {
  it("are loaded by the first call after a restart without data", async () => {
    const server = await startRedis();
    const store = new Store({ connection: server.url });
    const admin = new Redis(server.url);
    try {
      await store.claims.readDue(QUEUE, 0, 1);
      await server.restart();
      await store.claims.readDue(QUEUE, 0, 1);
      await eventually(async () => expect(await librariesOf(admin)).toHaveLength(1));
    } finally {
      await store.close();
      admin.disconnect();
      await server.stop();
    }
  });

  it("are loaded into each master of a cluster, and again where one lacks them", async () => {
    const cluster = await emptied("cluster");
    const admins = cluster.nodes.map(({ url }) => new Redis(url));
    const flush = () => Promise.all(admins.map((admin) => admin.function("FLUSH").catch(() => {})));
    await flush();
    const queues = ["a", "b", "c", "d", "e", "f"];
    const other = await Bench.open(cluster.url, { queues });
    try {
      const read = async () => {
        for (const queue of queues) await other.store.claims.readDue(queue, 0, 1);
      };
      await read();
      for (const admin of admins.slice(0, 3)) {
        await admin.function("FLUSH");
        await read();
        expect(await librariesOf(admin)).toHaveLength(1);
      }
    } finally {
      await other.close();
      await flush();
      for (const admin of admins) admin.disconnect();
    }
  });
});
