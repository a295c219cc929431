import { once } from "node:events";
import { parseTask, type TaskInput } from "@carillon/core";
import { localName, shardOf } from "@carillon/core/internal";
import { type Decided, Scheduler, type SchedulerOptions } from "@carillon/scheduler";
import { Store, type StoreOptions } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, test as base, beforeAll, describe, expect, onTestFinished, vi } from "vitest";
import { hourly, SILENT } from "../../../test/helpers.js";
import { Agenda } from "../src/loop/agenda.js";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** Below the 30 s after which a node checks again on its own, and enough for a busy machine. */
const soonEnough = () => ({ signal: AbortSignal.timeout(60_000) });
let redis: RedisServer;
let serial = 0;

interface Stage {
  /** A store on the namespace of this test. */
  store: Store;
  /** A node with the given store. */
  node(
    options?: Partial<SchedulerOptions>,
    more?: Partial<StoreOptions>,
  ): { scheduler: Scheduler; own: Store };
  put(queue: string, ...inputs: (Partial<TaskInput> & { id: string })[]): Promise<unknown>;
  soon(ms: number): Promise<{ at: number }>;
}

/** Most of these tests wait nearly all the time, so they run concurrently. */
const it = base.extend<Stage>({
  store: async ({ task: _ }, use) => {
    serial += 1;
    const store = new Store({ connection: redis.url, namespace: `live${serial}` });
    await use(store);
    await store.close();
  },
  node: async ({ store }, use) => {
    const open: { stop(): Promise<void> }[] = [];
    await use((options = {}, more = {}) => {
      const own = new Store({ connection: redis.url, namespace: store.namespace, ...more });
      const scheduler = new Scheduler({ store: own, logger: SILENT, ...options });
      open.push({ stop: () => scheduler.stop().then(() => own.close()) });
      return { scheduler, own };
    });
    await Promise.all(open.map((one) => one.stop()));
  },
  put: ({ store }, use) =>
    use((queue, ...inputs) =>
      store.tasks.put(
        queue,
        inputs.map((input) => parseTask({ type: "noop", queue, schedule: hourly(), ...input })),
      ),
    ),
  soon: ({ store }, use) => use(async (ms) => ({ at: (await store.serverTime()) + ms })),
});

describe("the liveness of a node", () => {
  beforeAll(async () => {
    redis = await startRedis({ appendonly: true });
  });
  afterAll(async () => {
    await redis.stop();
  });

  it.concurrent("receives an announcement while it reads the same queue", async ({ node, put, soon }) => {
    const { scheduler, own } = node();
    await put("q", { id: "later" });
    await scheduler.start();
    await pause(200);
    // Delays answers, so that they do not contain what is put meanwhile.
    const { next } = own.claims;
    own.claims.next = async (queue) => {
      const parts = await next.call(own.claims, queue);
      await pause(300);
      return parts;
    };
    const first = once(scheduler, "decided");
    await put("q", { id: "first", schedule: await soon(2_000) });
    await first;
    const second = once(scheduler, "decided", soonEnough());
    await pause(50);
    await put("q", { id: "second", schedule: await soon(2_000) });
    expect((await second)[0].task).toBe("system/second");
  });

  it.concurrent("receives the announcement of a new queue while it reads the others", async ({
    node,
    put,
    soon,
  }) => {
    const { scheduler, own } = node({ rereadEvery: 8_000 });
    await put("q", { id: "later" });
    await scheduler.start();
    await pause(200);
    const { next } = own.claims;
    let slow = false;
    own.claims.next = async (queue) => {
      slow = true;
      const parts = await next.call(own.claims, queue);
      await pause(300);
      return parts;
    };
    await eventually(() => slow);
    const decided = once(scheduler, "decided", { signal: AbortSignal.timeout(6_000) });
    await put("new", { id: "soon", schedule: await soon(2_000) });
    expect((await decided)[0].task).toBe("system/soon");
  });

  it.concurrent("serves the other queues while one of them cannot be read", async ({ node, put, soon }) => {
    const { scheduler, own } = node();
    await put("bad", { id: "t" });
    await put("good", { id: "t", schedule: await soon(2_000) });
    await internalsOf(own).link.ask((client) => client.del(internalsOf(own).keys.queue("bad").next));
    await internalsOf(own).link.ask((client) =>
      client.set(internalsOf(own).keys.queue("bad").next, "not ours"),
    );
    const decided = once(scheduler, "decided", soonEnough());
    await scheduler.start();
    expect((await decided)[0].queue).toBe("good");
  });

  it.concurrent("tries again soon if the list of queues cannot be read", async ({ node, put }) => {
    const { scheduler, own } = node();
    await put("q", { id: "t", schedule: { every: "1s" } });
    const { queues } = own.registry;
    let failing = 3;
    own.registry.queues = async () => {
      failing -= 1;
      if (failing >= 0) throw new Error("for once");
      return queues.call(own.registry);
    };
    const decided = once(scheduler, "decided", soonEnough());
    await scheduler.start();
    expect((await decided)[0].task).toBe("system/t");
    expect(failing).toBeLessThan(0);
  });

  it.concurrent("serves the other shards while some cannot be claimed", async ({ node, put, soon }) => {
    // A node whose first shards are those that fail.
    const nodeId = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].find((id) => shardOf(id) === 0);
    const { scheduler, own } = node({ nodeId });
    const at = await soon(2_000);
    await put("q", ...Array.from({ length: 64 }, (_, i) => ({ id: `t${i}`, schedule: at })));
    const keys = internalsOf(own).keys.queue("q");
    for (const shard of [0, 1, 2, 3, 4, 5]) {
      await internalsOf(own).link.ask((client) => client.del(keys.due(shard)));
      await internalsOf(own).link.ask((client) => client.set(keys.due(shard), "not ours"));
    }
    const shards = new Set<string>();
    scheduler.on("decided", ({ task }) => shards.add(task));
    await scheduler.start();
    const expected = (
      await Promise.all(
        [6, 7].map((shard) => internalsOf(own).link.ask((client) => client.zcard(keys.due(shard)))),
      )
    ).reduce((sum, n) => sum + n, 0);
    await eventually(() => expect(shards.size).toBe(expected));
  });

  it.concurrent("claims while `onAlert` hangs, and stops when that has ended", async ({ node, put }) => {
    let end: undefined | (() => void);
    const onAlert = () => new Promise<void>((resolve) => (end = resolve));
    // A busy machine extends the mutex late.
    const { scheduler, own } = node({ onAlert, mutexTtl: "1m" });
    await put("q", { id: "t", schedule: { every: "1s" }, overlap: "allow" });
    const { alerts, next, mutex } = internalsOf(own).keys.queue("q");
    const alert = { kind: "failed", task: "system/t", run: "r1", at: 1 };
    await internalsOf(own).link.ask((client) => client.rpush(alerts, JSON.stringify(alert)));
    await internalsOf(own).link.ask((client) => client.zadd(next, 1, "a"));
    let decided = 0;
    scheduler.on("decided", () => {
      decided += 1;
    });
    await scheduler.start();
    await eventually(() => end !== undefined);
    const before = decided;
    await eventually(() => decided > before);
    expect(await internalsOf(own).link.ask((client) => client.exists(mutex("a")))).toBe(1);
    const stopped = scheduler.stop();
    end?.();
    await stopped;
    expect(await internalsOf(own).link.ask((client) => client.llen(alerts))).toBe(0);
  });

  it.concurrent("continues at once if a listener throws, and logs it", async ({ node, put }) => {
    const said: object[] = [];
    const logger = { ...SILENT, error: (details: object) => void said.push(details) };
    const { scheduler } = node({ logger });
    await put("q", { id: "t", schedule: { every: "1s" }, overlap: "allow" });
    let decided = 0;
    scheduler.on("decided", () => {
      decided += 1;
      throw new Error("mine");
    });
    await scheduler.start();
    await eventually(() => decided >= 3);
    expect(said).toEqual(Array(3).fill({ event: "decided", error: "Error: mine" }));
  });

  it.concurrent("decides the other tasks of a shard in which one cannot be read", async ({
    node,
    put,
    soon,
  }) => {
    const { scheduler, own } = node();
    const at = await soon(2_000);
    await put("q", ...Array.from({ length: 30 }, (_, i) => ({ id: `t${i}`, schedule: at })));
    await internalsOf(own).link.ask((client) =>
      client.hset(internalsOf(own).keys.queue("q").task("system/t7"), "schedule", "{broken"),
    );
    const tasks = new Set<string>();
    scheduler.on("decided", ({ task }) => tasks.add(task));
    await scheduler.start();
    await eventually(() => expect(tasks.size).toBe(29));
  });

  it("claims from other queues while one has a long backlog", async ({ node, put, store }) => {
    const { scheduler, own } = node();
    // The state after minutes without any node: each task of one shard owes 100 runs.
    const ids = Array.from({ length: 6_000 }, (_, i) => `t${i}`)
      .filter((id) => shardOf(localName({ owner: "system", id })) === 0)
      .slice(0, 600);
    const backlog = { schedule: { every: "1s" }, catchUp: "all", overlap: "allow" } as const;
    await put("heavy", ...ids.map((id) => ({ id, ...backlog })));
    const now = await store.serverTime();
    const start = now - (now % 1000) - 100_000;
    const keys = internalsOf(own).keys.queue("heavy");
    await internalsOf(own).link.ask((client) =>
      Promise.all([
        ...ids.map((id) => client.hset(keys.task(`system/${id}`), "nominal", start, "due", start)),
        ...ids.map((id) => client.zadd(keys.due(0), start, `system/${id}`)),
        client.zadd(keys.next, start, "0"),
      ]),
    );
    await put("light", { id: "t", schedule: { every: "1s" }, overlap: "allow" });
    let light = 0;
    let walked = 0;
    let walkedBefore = 0;
    scheduler.on("decided", ({ queue }: Decided) => {
      if (queue === "heavy") walked += 1;
      else if (++light === 4) walkedBefore = walked;
    });
    await scheduler.start();
    // Each task of the backlog gets its turn, though it is owed more.
    await eventually(() => expect(walked).toBeGreaterThan(600));
    await eventually(() => expect(light).toBeGreaterThanOrEqual(4));
    // The backlog of 60,000 does not come first.
    expect(walkedBefore).toBeLessThan(60_000);
  });

  it("stops quickly while much is due", async ({ node, put, store }) => {
    const { scheduler, own } = node();
    const all = Array.from({ length: 5_000 }, (_, i) => ({ id: `t${i}`, schedule: { every: "1s" } }));
    for (let i = 0; i < all.length; i += 1000) await put("q", ...all.slice(i, i + 1000));
    await pause(1_000); // all are due by then
    const { commit } = own.claims;
    const claiming = new Promise<void>((resolve) => {
      own.claims.commit = (...args) => {
        resolve();
        return commit.apply(own.claims, args);
      };
    });
    await scheduler.start();
    await claiming;
    await scheduler.stop();
    // Batches in progress are finished, at most one for each shard, and no further ones begin.
    const begun = await internalsOf(store).link.ask((client) =>
      client.zcard(internalsOf(store).keys.queue("q").runs),
    );
    expect(begun).toBeGreaterThan(0);
    expect(begun).toBeLessThan(1_000);
  });

  it.concurrent("is not listed if it was stopped during its start", async ({ node, put, soon, store }) => {
    const { scheduler, own } = node();
    const { beat } = own.registry;
    own.registry.beat = async (info) => {
      await pause(300);
      await beat.call(own.registry, info);
    };
    const started = scheduler.start();
    await pause(150);
    const stopped = scheduler.stop();
    await Promise.all([started, stopped, scheduler.stop()]);
    expect(scheduler.ready).toBe(false);
    await pause(100);
    expect(await store.registry.nodes()).toEqual([]);
    const { at } = await soon(0);
    await put("q", { id: "t", schedule: { every: "1s" } });
    await eventually(async () => (await store.serverTime()) > at + 2_500);
    expect(await internalsOf(store).link.ask((c) => c.zcard(internalsOf(store).keys.queue("q").runs))).toBe(
      0,
    );
  });

  it.concurrent("cannot be started again", async ({ node }) => {
    const { scheduler } = node();
    await scheduler.start();
    await scheduler.stop();
    const message = expect.stringContaining("this node was stopped");
    await expect(scheduler.start()).rejects.toMatchObject({ code: "CONFLICT", message });
  });

  it.concurrent("resolves every call of stop when the first one has ended", async ({ node }) => {
    const { scheduler, own } = node();
    await scheduler.start();
    const { removeNode } = own.registry;
    let removed = false;
    own.registry.removeNode = async (id) => {
      await pause(200);
      await removeNode.call(own.registry, id);
      removed = true;
    };
    void scheduler.stop();
    await scheduler.stop();
    expect(removed).toBe(true);
  });

  it.concurrent("tries again after a failure while messages keep arriving", async ({ node, put, soon }) => {
    const { scheduler, own } = node();
    await put("q", { id: "t", schedule: await soon(1_000) });
    const decided = once(scheduler, "decided", soonEnough());
    await scheduler.start();
    await pause(200);
    // After two failing rounds the next attempt comes 200 ms later.
    let failing = 2;
    own.claims.next = ((next) => async (queue: string) => {
      if (failing > 0) {
        failing -= 1;
        throw new Error("for once");
      }
      return next.call(own.claims, queue);
    })(own.claims.next);
    let at = Date.now() + 3_600_000;
    const noise = setInterval(() => {
      at -= 1_000;
      void internalsOf(own).link.client.publish(internalsOf(own).keys.wake, `other 0 ${at}`);
    }, 20);
    try {
      await decided;
      const again = once(scheduler, "decided", soonEnough());
      await put("q", { id: "u", schedule: await soon(2_000) });
      expect((await again)[0].task).toBe("system/u");
    } finally {
      clearInterval(noise);
    }
  });

  it("reads all queues once when one is announced, not with each message", async ({ node, put, soon }) => {
    const { scheduler, own } = node();
    await put("q", { id: "later" });
    await scheduler.start();
    await eventually(
      async () =>
        (await internalsOf(own).link.ask((c) => c.pubsub("NUMSUB", internalsOf(own).keys.wake)))[1] === 1,
    );
    const looks = vi.spyOn(Agenda.prototype, "earliest");
    const heard = vi.spyOn(Agenda.prototype, "nearer");
    onTestFinished(() => void vi.restoreAllMocks());
    const { at } = await soon(3_600_000);
    for (const nonsense of ["", "q", "q 0", "q 0 soon", "q 0 NaN"])
      void internalsOf(own).link.client.publish(internalsOf(own).keys.wake, nonsense);
    for (let i = 0; i < 1_000; i++)
      void internalsOf(own).link.client.publish(internalsOf(own).keys.wake, `other${i} 0 ${at + i}`);
    await eventually(() => heard.mock.calls.length === 1_000);
    expect(looks.mock.calls.length).toBeLessThan(50);
    const decided = once(scheduler, "decided", soonEnough());
    await put("q", { id: "soon", schedule: await soon(2_000) });
    expect((await decided)[0].task).toBe("system/soon");
  });

  it.concurrent("reconciles ended runs together, not one by one", async ({ node, put, store }) => {
    const { scheduler, own } = node({}, { retention: { completedJobs: { for: 1_000 } } });
    await put("q", { id: "t", overlap: "allow" });
    await scheduler.start();
    // Final runs without jobs, one every 10 ms.
    const now = await store.serverTime();
    const keys = internalsOf(own).keys.queue("q");
    for (let i = 0; i < 300; i++)
      await internalsOf(own).link.ask((c) => c.zadd(keys.runs, now + 500 + i * 10, `x${i}`));
    await internalsOf(own).link.ask((c) => c.zadd(keys.next, now + 500, "r"));
    await internalsOf(own).link.ask((c) => c.publish(internalsOf(own).keys.wake, `q r ${now + 500}`));
    let looks = 0;
    const { reconcile } = own.runs;
    own.runs.reconcile = (queue) => {
      looks += 1;
      return reconcile.call(own.runs, queue);
    };
    await eventually(async () => (await internalsOf(own).link.ask((c) => c.zcard(keys.runs))) === 0);
    expect(looks).toBeLessThan(12);
  });

  it.concurrent("clears the runs of a deleted task without a pause between the steps", async ({
    node,
    put,
  }) => {
    const { scheduler, own } = node();
    await put("q", { id: "t" });
    const keys = internalsOf(own).keys.queue("q");
    const left = Array.from({ length: 1_000 }, (_, i) => `old@${i}`);
    await internalsOf(own).link.ask((c) =>
      c.zadd(keys.gone("gone:a.hist"), ...left.flatMap((id) => [1, id])),
    );
    await internalsOf(own).link.ask((c) => c.zadd(keys.runs, 1, "gone:a.hist"));
    await internalsOf(own).link.ask((c) => c.zadd(keys.next, 1, "r"));
    await scheduler.start();
    await eventually(async () => (await internalsOf(own).link.ask((c) => c.exists(keys.runs))) === 0);
  });

  it.concurrent("serves many concurrent triggers of one task", async ({ put, store }) => {
    await put("q", { id: "t", overlap: "allow" });
    const name = { queue: "q", owner: "system", id: "t" };
    const triggers = Array.from({ length: 100 }, (_, i) =>
      store.claims.trigger(name, { key: `k${i}`, token: `token${i}`, node: "me" }),
    );
    const outcomes = (await Promise.all(triggers)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(triggers.map(() => "enqueued"));
  });

  it.concurrent("continues soon after a jump of the server's clock that a claim detects first", async ({
    node,
    put,
  }) => {
    const { scheduler, own } = node();
    let jump = 0;
    const { readDue } = own.claims;
    own.claims.readDue = async (...args) => {
      const batch = await readDue.apply(own.claims, args);
      return { ...batch, now: batch.now + jump };
    };
    const { serverTime } = own;
    own.serverTime = async () => (await serverTime.call(own)) + jump;
    // A commit uses the server's real clock, and makes no decision of a later time.
    const { pack } = own.claims;
    own.claims.pack = (queue, item, token, now, options) =>
      pack.call(own.claims, queue, item, token, now - jump, options);
    // Committed one at a time, and future occurrences are not enqueued.
    await put("q", { id: "t", schedule: { every: "1s" }, overlap: "allow", catchUp: "all" });
    await scheduler.start();
    await once(scheduler, "decided");
    jump = 120_000;
    // A task that was read before the jump may still be decided.
    const soon = soonEnough();
    for (let held = 0; held <= 5_000; ) {
      const from = performance.now();
      await once(scheduler, "decided", soon);
      held = performance.now() - from;
    }
  });
});
