import { once } from "node:events";
import { isCarillonError, parseTask, type TaskInput } from "@carillon/core";
import { Scheduler, type SchedulerOptions } from "@carillon/scheduler";
import { Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, startFaultProxy, startRedis } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hourly, SILENT, sharedRedis } from "../../../test/helpers.js";

let serial = 0;

describe("a node on real time", () => {
  const redis = sharedRedis();
  let store: Store;
  let namespace: string;
  const nodes: Scheduler[] = [];

  beforeEach(() => {
    serial += 1;
    namespace = `real${serial}`;
    store = new Store({ connection: redis.url, namespace });
  });
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.stop()));
    await store.close();
  });

  function node(options: Partial<SchedulerOptions> = {}): Scheduler {
    const made = new Scheduler({ connection: redis.url, namespace, logger: SILENT, ...options });
    nodes.push(made);
    return made;
  }
  const put = (input: Partial<TaskInput> & { id: string }) =>
    store.tasks.put("q", [parseTask({ type: "noop", queue: "q", schedule: hourly(), ...input })]);

  it("is woken by a put of another process and fires at its time, not before", async () => {
    const scheduler = node();
    await scheduler.start();
    await put({ id: "later" });
    const decided = once(scheduler, "decided");
    await put({ id: "soon", schedule: { every: "1s" } });
    const [{ task, at, due }] = await decided;
    expect(task).toBe("system/soon");
    expect(at).toBeGreaterThanOrEqual(due);
    expect(at - due).toBeLessThan(30_000);
  });

  it("finds a task without any message, at the next re-read", async () => {
    const scheduler = node({ rereadEvery: 50 });
    await scheduler.start();
    const decided = once(scheduler, "decided");
    // A store on another wake channel: its messages reach no node.
    const muted = new Store({ connection: redis.url, namespace });
    Object.assign(internalsOf(muted).keys, { wake: "{nobody}:wake" });
    await muted.tasks.put("q", [parseTask({ id: "t", type: "noop", queue: "q", schedule: { every: "1s" } })]);
    await muted.close();
    const [{ task }] = await decided;
    expect(task).toBe("system/t");
  });

  it("is listed while it runs, and not after", async () => {
    const scheduler = node({ nodeId: "n1" });
    await scheduler.start();
    expect(await store.registry.nodes()).toMatchObject([{ id: "n1", pid: process.pid }]);
    await scheduler.stop();
    expect(await store.registry.nodes()).toEqual([]);
  });

  it("refuses a Redis that would lose tasks, or warns when told to", async () => {
    const forgetful = await startRedis();
    try {
      const refusing = node({ connection: forgetful.url });
      await expect(refusing.start()).rejects.toSatisfy(
        (error) => isCarillonError(error, "REDIS_UNSAFE") && error.message.includes("appendonly"),
      );
      const yours = new Store({ connection: forgetful.url, namespace });
      const listeners = () => internalsOf(yours).link.client.listenerCount("error");
      const before = listeners();
      await expect(new Scheduler({ store: yours, logger: SILENT }).start()).rejects.toThrow("appendonly");
      expect(listeners()).toBe(before);
      await yours.close();
      const warnings: string[] = [];
      const logger = { ...SILENT, warn: (_details: object, message: string) => warnings.push(message) };
      const warned = node({ connection: forgetful.url, unsafeRedis: "warn", logger });
      await warned.start();
      expect(warnings.some((message) => message.includes("appendonly is off"))).toBe(true);
    } finally {
      await forgetful.stop();
    }
  });

  it("waits for a Redis that is down at its start, and continues after an outage without a restart", async () => {
    const server = await startRedis({ appendonly: true });
    const own = new Store({ connection: server.url, namespace });
    await server.kill();
    const said: string[] = [];
    const texts = new Set<string>();
    const errors: string[] = [];
    const error = (details: object, message: string) => {
      const { code, error } = details as { code: string; error: string };
      said.push(code);
      texts.add(message);
      errors.push(error);
    };
    const scheduler = node({ connection: server.url, logger: { ...SILENT, error } });
    const started = scheduler.start();
    await eventually(() => expect(said).toContain("REDIS_UNAVAILABLE"));
    // Texts of Redis and of the network go into a field; the message is always the same.
    expect(errors.join()).toContain("ECONNREFUSED");
    expect(texts).toContain("Redis cannot be reached");
    expect(scheduler.ready).toBe(false);
    await server.restart();
    await started;
    expect(scheduler.ready).toBe(true);

    await server.kill();
    await eventually(() => expect(scheduler.ready).toBe(false));
    expect([...texts].filter((text) => text.includes("ECONN"))).toEqual([]);
    await server.restart();
    await eventually(() => expect(scheduler.ready).toBe(true));
    const decided = once(scheduler, "decided");
    await own.tasks.put("q", [
      parseTask({ id: "after", type: "noop", queue: "q", schedule: { every: "1s" } }),
    ]);
    const [{ task }] = await decided;
    expect(task).toBe("system/after");
    await scheduler.stop();
    await own.close();
    await server.stop();
  });

  it.each(["of its own", "of yours"])(
    "reports when Redis is lost and back, with a store %s",
    async (whose) => {
      const proxy = await startFaultProxy(redis);
      const yours = new Store({ connection: proxy.url, namespace });
      const connection = whose === "of yours" ? { connection: undefined, store: yours } : {};
      const scheduler = node({ connection: proxy.url, ...connection, heartbeatEvery: 300_000 });
      const told: boolean[] = [];
      scheduler.on("connection", ({ ready }) => told.push(ready));
      await scheduler.start();
      told.length = 0;
      proxy.refuse();
      await eventually(() => expect(told).toContain(false));
      expect(scheduler.ready).toBe(false);
      await proxy.heal();
      await eventually(() => expect(told.at(-1)).toBe(true));
      await eventually(() => expect(scheduler.ready).toBe(true));
      await scheduler.stop();
      // Closes the node only: the store stays open for its owner.
      const { client } = internalsOf(yours).link;
      const listeners = () => [client.listenerCount("error"), client.listenerCount("ready")];
      const before = listeners();
      const another = new Scheduler({ store: yours, logger: SILENT });
      await another.start();
      // Nodes add no listeners to the client itself, however many there are.
      expect(listeners()).toEqual(before);
      await another.stop();
      expect(listeners()).toEqual(before);
      await yours.close();
      await proxy.close();
    },
  );

  it("reports a read-only Redis, is not ready with it, and continues when it can write again", async () => {
    const server = await startRedis({ appendonly: true });
    const admin = new Store({ connection: server.url, namespace });
    const said: string[] = [];
    const texts = new Set<string>();
    const error = (details: object, message: string) => {
      said.push((details as { code: string }).code);
      texts.add(message);
    };
    const scheduler = node({ connection: server.url, heartbeatEvery: 100, logger: { ...SILENT, error } });
    await scheduler.start();
    expect(scheduler.ready).toBe(true);
    await internalsOf(admin).link.ask((client) => client.call("REPLICAOF", "127.0.0.1", "1"));
    await eventually(() => expect(said).toContain("REDIS_READ_ONLY"));
    await eventually(() => expect(texts).toContain("the heartbeat failed"));
    expect(scheduler.ready).toBe(false);
    const why = expect.stringContaining("read-only");
    expect(scheduler.readiness).toEqual({ ready: false, reason: "REDIS_READ_ONLY", why });
    await internalsOf(admin).link.ask((client) => client.call("REPLICAOF", "NO", "ONE"));
    await eventually(() => expect(scheduler.ready).toBe(true));
    expect(scheduler.readiness).toEqual({ ready: true });
    await scheduler.stop();
    await admin.close();
    await server.stop();
  });

  it("takes over from a node that died holding a mutex, long before its time-to-live is over", async () => {
    const scheduler = node({ mutexTtl: "500ms" });
    await scheduler.start();
    await store.serverTime();
    // A node leaves it behind when it is killed during a claim.
    await internalsOf(store).mutex.take(internalsOf(store).keys.queue("q").mutex("shards"), 600_000);
    const decided = once(scheduler, "decided");
    await put({ id: "orphan", schedule: { every: 100 } });
    expect((await decided)[0].task).toBe("system/orphan");
  });

  it.each([
    [{ mutexTtl: 5 }, "mutexTtl"],
    [{ rereadEvery: 60_000 }, "rereadEvery"],
    [{ heartbeatEvery: "10m" }, "heartbeatEvery"],
    [{ grace: "1 minute" }, "grace"],
    [{ namespace: "a:b" }, "namespace"],
    [{ nodeId: "{x}" }, "nodeId"],
    [{ mutexTTL: 500 } as object, "mutexTTL"],
    [{ unsafeRedis: "ignore" as never }, "unsafeRedis"],
  ])("refuses the option %j by name", (option, field) => {
    expect(() => new Scheduler({ connection: redis.url, logger: SILENT, ...option })).toThrowError(
      expect.objectContaining({ field }),
    );
  });
});
