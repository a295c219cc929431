import { once } from "node:events";
import { CarillonError, parseTask, type Run } from "@carillon/core";
import { causeOf, messagesOf } from "@carillon/core/internal";
import { Scheduler } from "@carillon/scheduler";
import { type Alert, type Failpoint, type Lease, Store } from "@carillon/store";
import { internalsOf, storeOf, withSeams } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeInfo, SILENT, sharedRedis } from "../../../test/helpers.js";
import { AlertWatch } from "../src/alerts/alert-watch.js";
import { Alerter } from "../src/alerts/alerter.js";
import { checked, type SchedulerOptions } from "../src/options.js";
import { LEASE } from "./claiming.js";

const QUEUE = "bells";
const ALWAYS = () => true;
let serial = 0;

describe("the alerter", () => {
  const redis = sharedRedis();
  let store: Store;
  let failpoint: Failpoint | undefined;
  /** Runs that were reported to the listener. */
  let heard: string[];

  beforeEach(() => {
    serial += 1;
    heard = [];
    failpoint = undefined;
    const namespace = `alerts${serial}`;
    store = new Store(
      withSeams({ connection: redis.url, namespace }, { failpoint: (...at) => failpoint?.(...at) }),
    );
  });
  afterEach(async () => {
    await store.close();
  });

  async function put(id: string, more: object = {}): Promise<void> {
    const parsed = parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "1h" }, ...more });
    await store.tasks.put(QUEUE, [parsed]);
  }
  /** Makes runs of a task fail. */
  async function failed(task: string, ...runs: string[]): Promise<void> {
    await failedAt(1, task, ...runs);
  }
  async function failedAt(at: number, task: string, ...runs: string[]): Promise<void> {
    const { alerts } = internalsOf(store).keys.queue(QUEUE);
    const lines = runs.map((run) => JSON.stringify({ kind: "failed", task: `system/${task}`, run, at }));
    await internalsOf(store).link.ask((client) => client.rpush(alerts, ...lines));
  }
  const runs = (count: number) => Array.from({ length: count }, (_, i) => `r${i}`);
  const left = async () => (await store.alerts.waiting(QUEUE)).map(({ alert }) => alert.run);
  const hear = (alert: Alert) => void heard.push(alert.run as string);
  const alerter = (options: Partial<SchedulerOptions> = {}) =>
    new Alerter(store, checked({ store, nodeId: "n1", logger: SILENT, onAlert: hear, ...options }));

  it("delivers each alert once while two nodes deliver at once", async () => {
    await failed("t", ...runs(250));
    const twice = [alerter(), alerter()].map((one) => one.deliver(QUEUE, LEASE, ALWAYS));
    expect(await Promise.all(twice)).toEqual([false, false]);
    expect(new Set(heard).size).toBe(250);
  });

  it("delivers each alert if the answer to a delivery is lost", async () => {
    await failed("t", ...runs(150));
    let lost = false;
    failpoint = (point) => {
      if (point !== "after remove-delivered" || lost) return;
      lost = true;
      throw new Error("Connection is closed.");
    };
    await alerter().deliver(QUEUE, LEASE, ALWAYS);
    expect(lost).toBe(true);
    expect(heard).toEqual(runs(150));
    expect(await left()).toEqual([]);
  });

  it("delivers the alerts of other tasks when one is deleted meanwhile", async () => {
    await put("t");
    await failed("t", "r1", "r2");
    const onAlert = async (alert: Alert) => {
      hear(alert);
      if (alert.run !== "r1") return;
      await store.tasks.delete({ queue: QUEUE, owner: "system", id: "t" });
      await failed("u", "r3", "r4");
    };
    await alerter({ onAlert }).deliver(QUEUE, LEASE, ALWAYS);
    expect(heard).toEqual(["r1", "r2", "r3", "r4"]);
  });

  it("drops foreign data among the alerts, and delivers the others", async () => {
    const { alerts } = internalsOf(store).keys.queue(QUEUE);
    const nonsense = [
      "{",
      "null",
      "5",
      '{"kind":5,"task":"system/t"}',
      '{"kind":"failed","task":{}}',
      '{"kind":"failed","task":"x"}',
    ];
    await internalsOf(store).link.ask((client) => client.rpush(alerts, ...Array(30).fill(nonsense).flat()));
    await failed("t", "r1");
    expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
    expect(heard).toEqual(["r1"]);
    expect(await internalsOf(store).link.ask((client) => client.exists(alerts))).toBe(0);
  });

  it("delivers alerts one by one until its turn is over, and leaves the rest", async () => {
    await failed("t", ...runs(3));
    expect(await alerter().deliver(QUEUE, LEASE, () => heard.length < 2)).toBe(true);
    expect(heard).toEqual(["r0", "r1"]);
    expect(await left()).toEqual(["r2"]);
  });

  describe("when only some nodes have onAlert", () => {
    const nodes: Scheduler[] = [];
    afterEach(async () => {
      await Promise.all(nodes.splice(0).map((one) => one.stop()));
    });
    const node = (nodeId: string, options: Partial<SchedulerOptions> = {}) => {
      const on = { connection: redis.url, namespace: store.namespace, unsafeRedis: "warn" } as const;
      const made = new Scheduler({ ...on, nodeId, logger: SILENT, ...options });
      nodes.push(made);
      return made;
    };
    const armed = async () => {
      await store.registry.leave(QUEUE, await store.registry.enter(QUEUE));
      const { next } = internalsOf(store).keys.queue(QUEUE);
      const now = await store.serverTime();
      await internalsOf(store).link.ask((client) => client.zadd(next, now, "a"));
      await internalsOf(store).link.ask((client) =>
        client.publish(internalsOf(store).keys.wake, `${QUEUE} a ${now}`),
      );
    };
    const alive = async (ago = 0) => {
      const beat = (await store.serverTime()) - ago;
      await store.registry.beat(nodeInfo("n1", { beat, onAlert: true }));
    };

    it("leaves alerts to a live node that has it", async () => {
      await put("t");
      await failed("t", "r1", "r2");
      await armed();
      const quiet = node("n2");
      await alive();
      await quiet.tick();
      expect(await left()).toEqual(["r1", "r2"]);
      await node("n1", { onAlert: hear }).tick();
      expect(heard).toEqual(["r1", "r2"]);
      await failed("t", "r3");
      await armed();
      await alive(30_001);
      await quiet.tick();
      expect(await left()).toEqual([]);
      expect(heard).toEqual(["r1", "r2"]);
    });

    it("checks once a second while that node is slow", async () => {
      await put("t");
      await failed("t", "r1");
      await armed();
      await alive();
      const quiet = node("n2");
      const { registry } = storeOf(quiet);
      const { nodes: list } = registry;
      const asked: number[] = [];
      registry.nodes = () => {
        asked.push(performance.now());
        return list.call(registry);
      };
      await quiet.start();
      await eventually(() => expect(asked.length).toBeGreaterThan(4));
      const [before = 0, last = 0] = asked.slice(-2);
      expect(last - before).toBeGreaterThan(900);
      expect(await left()).toEqual(["r1"]);
      // Delivered after one more check.
      await node("n1", { onAlert: hear }).tick();
      asked.length = 0;
      const decided = once(quiet, "decided");
      await put("later", { schedule: { at: (await store.serverTime()) + 4_500 } });
      await decided;
      // The claim asks too, once or twice.
      expect(asked.length).toBeLessThan(3);
    });

    it("delivers all alerts, whichever node sees them first, also when the node with onAlert stops", async () => {
      await put("t");
      const listener = node("n1", { onAlert: hear });
      await Promise.all([listener, node("n2"), node("n3")].map((one) => one.start()));
      for (const run of runs(4)) {
        await failed("t", run);
        await armed();
        await eventually(() => expect(heard).toContain(run));
      }
      expect(heard).toEqual(runs(4));
      await listener.stop();
      await failed("t", "r4");
      await armed();
      await eventually(async () => expect(await left()).toEqual([]));
      expect(heard).toHaveLength(4);
    });
  });

  it("extends the mutex between two alerts", async () => {
    await failed("t", ...runs(3));
    let remaining = 100;
    const extended: number[] = [];
    const lease: Lease = {
      get remaining() {
        return remaining;
      },
      async extend(ttl) {
        extended.push(heard.length);
        remaining = ttl;
        return true;
      },
      async release() {},
    };
    await alerter().deliver(QUEUE, lease, ALWAYS);
    expect(extended).toEqual([1]);
  });

  it("does not wait for a call that hangs: logs it, and delivers the others", async () => {
    await failed("t", ...runs(2));
    const said: string[] = [];
    const logger = { ...SILENT, error: (_details: object, message: string) => said.push(message) };
    const onAlert = (alert: Alert) => {
      hear(alert);
      return new Promise<void>(() => {});
    };
    const settings = checked({ store, nodeId: "n1", logger, onAlert });
    expect(await new Alerter(store, settings, 50).deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
    expect(heard).toEqual(runs(2));
    expect(said).toEqual(Array(2).fill("onAlert timed out: continuing without it"));
    expect(await left()).toEqual([]);
  });

  it("extends the mutex while `onAlert` is slow", async () => {
    await failed("t", "r1");
    let end = () => {};
    let extended = 0;
    const extend = async () => {
      extended += 1;
      if (extended === 3) end();
      return true;
    };
    const onAlert = () => new Promise<void>((resolve) => (end = resolve));
    await alerter({ onAlert, mutexTtl: 100 }).deliver(QUEUE, { ...LEASE, extend }, ALWAYS);
    expect(extended).toBe(3);
  });

  describe("with webhooks", () => {
    const alerts = [{ on: ["failed"], url: "https://example.com/" }];
    const hooks = () => store.tasks.count("carillon-alerts");

    it("calls each webhook of the alert's kind once, even if the alert is delivered again", async () => {
      const urls = ["https://example.com/a", "https://example.com/b"];
      const wanted = urls.map((url) => ({ on: ["failed", "paused"], url }));
      await put("t", { alerts: [...wanted, { on: ["crashed"], url: "https://example.com/c" }] });
      const said: string[] = [];
      const logger = { ...SILENT, error: (_details: object, message: string) => said.push(message) };
      // The node that delivered the alert died before it could record that.
      const { enqueueNow } = store.claims;
      let left = 1;
      store.claims.enqueueNow = async (...all) => {
        left -= 1;
        if (left < 0) throw new CarillonError("REDIS_UNAVAILABLE", "for once.");
        return enqueueNow.apply(store.claims, all);
      };
      await failed("t", "r1");
      await expect(alerter({ logger }).deliver(QUEUE, LEASE, ALWAYS)).rejects.toThrow("for once");
      expect(await hooks()).toBe(1);
      store.claims.enqueueNow = enqueueNow;
      await alerter({ logger }).deliver(QUEUE, LEASE, ALWAYS);
      expect(await hooks()).toBe(2);
      expect(said).toEqual([]);
      // Once the deliveries are done, nothing keeps the queue of alerts registered.
      await store.deleteQueue("carillon-alerts");
      expect(await store.registry.queues()).not.toContain("carillon-alerts");
    });

    it("calls a webhook even if the clock of Redis goes back before the call is stored", async () => {
      await put("t", { alerts });
      await failed("t", "r1");
      const time = store.tasks.time.bind(store.tasks);
      let calls = 0;
      store.tasks.time = async (queue) => {
        calls += 1;
        return (await time(queue)) + (calls === 2 ? 60_000 : 0);
      };
      await alerter().deliver(QUEUE, LEASE, ALWAYS);
      expect([await hooks(), calls]).toEqual([1, 3]);
    });

    it("sends the run's record and the task's statistics, without the stack", async () => {
      await put("t", { alerts: [{ on: ["failed", "missed-deadline"], url: "https://example.com/" }] });
      const run = { id: "r1", task: { queue: QUEUE, owner: "system", id: "t" }, type: "noop" };
      const record: Run = {
        ...run,
        ...{ state: "final", outcome: "timed-out", key: "k", nominal: 5, due: 5, enqueued: 6 },
        ...{ trigger: "schedule", node: "n1", attempts: 2 },
      };
      store.runs.many = async () => [record];
      store.runs.stats = async () => ({ consecutiveFailures: "3" });
      const error = "TimeLimitError: over\nError: boom\n    at f (/srv/app/f.js:1:1)\n    at g (/srv/ap";
      const line = { kind: "failed", task: "system/t", run: "r1", at: 7, error };
      const missed = { kind: "missed-deadline", task: "system/t", at: 8 };
      const key = internalsOf(store).keys.queue(QUEUE).alerts;
      await internalsOf(store).link.ask((client) =>
        client.rpush(key, JSON.stringify(line), JSON.stringify(missed)),
      );
      await alerter({ consoleUrl: "https://carillon.example.com/" }).deliver(QUEUE, LEASE, ALWAYS);
      expect(() => alerter({ consoleUrl: "carillon.example.com" })).toThrow(/^consoleUrl: not an address/);
      const { tasks } = await store.tasks.list({ queue: "carillon-alerts" }, 10);
      const page = "https://carillon.example.com";
      const common = { namespace: store.namespace, task: run.task, type: "noop", consecutiveFailures: 3 };
      const { id: cause } = causeOf("failed", "TimeLimitError: over");
      expect(
        tasks
          .map(({ definition }) => messagesOf(definition.payload as never))
          .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
      ).toEqual([
        {
          url: "https://example.com/",
          bodies: [
            {
              ...common,
              cause,
              kind: "failed",
              outcome: "timed-out",
              nominal: 5,
              at: 7,
              run: "r1",
              attempts: 2,
              link: `${page}/runs/r1`,
              error: "TimeLimitError: over\nError: boom",
            },
          ],
        },
        {
          url: "https://example.com/",
          bodies: [{ ...common, kind: "missed-deadline", at: 8, link: `${page}/tasks/${QUEUE}/system/t` }],
        },
      ]);
    });

    it("logs that another node has its id", async () => {
      const warned: object[] = [];
      const logger = { ...SILENT, warn: (details: object) => void warned.push(details) };
      const watch = new AlertWatch(store, checked({ store, nodeId: "n1", logger }));
      const now = await store.serverTime();
      const twin = { beat: now + 60_000, every: 200_000 };
      await store.registry.beat(nodeInfo("n1", { ...twin, instance: "a" }));
      await watch.check(now);
      expect(warned).toEqual([]);
      await store.registry.beat(nodeInfo("n1", { ...twin, instance: "b", host: "other", pid: 2 }));
      await watch.check(now + 61_000);
      expect(warned).toEqual([{ node: "n1", processes: ["1 on h", "2 on other"] }]);
      await store.registry.removeNode("n1");
    });

    it("logs alerts that no worker takes for a minute, once a minute", async () => {
      await put("t", { alerts });
      await failed("t", "r1", "r2");
      await alerter().deliver(QUEUE, LEASE, ALWAYS);
      const warned: object[] = [];
      const logger = { ...SILENT, warn: (details: object) => void warned.push(details) };
      const watch = new AlertWatch(store, checked({ store, nodeId: "n1", logger }));
      const now = await store.serverTime();
      // It is the only node, so it watches.
      await store.registry.beat(nodeInfo("n1", { beat: now + 60_000, every: 200_000 }));
      await watch.check(now);
      expect(warned).toEqual([]);
      const { link, keys } = internalsOf(store);
      const { bull } = keys.queue("carillon-alerts");
      const [oldest] = await link.ask((client) => client.lrange(`${bull}wait`, -1, -1));
      await link.ask((client) => client.hset(`${bull}${oldest}`, "timestamp", 1));
      // A paused queue does not drop alerts.
      await store.queues.pause("carillon-alerts", "", "");
      await watch.check(now + 61_000);
      expect(warned).toEqual([{ queue: "carillon-alerts", waiting: 2, oldest: expect.any(Number) }]);
      await watch.check(now + 90_000);
      expect(warned).toHaveLength(1);
      await watch.check(now + 121_000);
      expect(warned).toHaveLength(2);
      await link.ask((client) => client.del(`${bull}wait`, `${bull}paused`));
      await watch.check(now + 200_000);
      expect(warned).toHaveLength(2);
    });

    it("tries again if Redis did not answer which webhooks to call", async () => {
      await put("t", { alerts });
      await failed("t", "r1", "r2");
      const { get } = store.tasks;
      store.tasks.get = async () => {
        store.tasks.get = get;
        throw new CarillonError("REDIS_UNAVAILABLE", "for once.");
      };
      await expect(alerter().deliver(QUEUE, LEASE, ALWAYS)).rejects.toThrow("for once");
      expect(await left()).toEqual(["r1", "r2"]);
      expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(await hooks()).toBe(2);
    });

    it("leaves alerts of a task in a newer format to a newer node, and delivers the others", async () => {
      for (const id of ["t", "u"]) await put(id, { alerts: [{ ...alerts[0], perMinute: 1_000 }] });
      const key = internalsOf(store).keys.queue(QUEUE).task("system/t");
      await internalsOf(store).link.ask((client) => client.hset(key, "v", "2"));
      const now = await store.serverTime();
      await failedAt(now, "t", ...runs(150));
      await failedAt(now, "u", "u1");
      expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(heard).toEqual(["u1"]);
      expect(await hooks()).toBe(1);
      // Removes the version, as if this node were the newer one.
      await internalsOf(store).link.ask((client) => client.hdel(key, "v"));
      expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(heard).toEqual(["u1", ...runs(150)]);
      expect(await hooks()).toBe(151);
      expect(await left()).toEqual([]);
    });

    it("does not put webhook calls into a task in a newer format: logs it, and delivers the others", async () => {
      await put("t", { alerts });
      await put("u", { alerts });
      await internalsOf(store).link.ask((client) =>
        client.hset(internalsOf(store).keys.queue(QUEUE).task("system/t"), "v", "2"),
      );
      await failed("t", "r1");
      await failed("u", "r2");
      const said: object[] = [];
      const logger = {
        ...SILENT,
        error: (details: object, message: string) => void said.push({ ...details, message }),
      };
      expect(await alerter({ logger }).deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(heard).toEqual(["r1", "r2"]);
      expect(said).toMatchObject([
        {
          code: "UNSUPPORTED_FORMAT",
          alert: { run: "r1" },
          message: "webhooks could not be called",
          error: expect.stringContaining("system/t"),
        },
      ]);
      expect(await hooks()).toBe(1);
    });

    it("does not put webhook calls over foreign data, and delivers the others", async () => {
      await put("u", { alerts });
      await internalsOf(store).link.ask((client) =>
        client.set(internalsOf(store).keys.queue(QUEUE).task("system/t"), "in the way"),
      );
      await failed("t", "r1");
      await failed("u", "r2");
      expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(heard).toEqual(["r1", "r2"]);
      expect(await hooks()).toBe(1);
    });

    it("leaves neither unreadable alerts nor alerts from the future to a newer node", async () => {
      await put("t", { alerts });
      await put("u", { alerts });
      const key = (id: string) => internalsOf(store).keys.queue(QUEUE).task(`system/${id}`);
      await internalsOf(store).link.ask((client) => client.hset(key("t"), "pending", "nonsense"));
      await internalsOf(store).link.ask((client) => client.hset(key("u"), "v", "2"));
      const now = await store.serverTime();
      await failedAt(now, "t", "r1");
      await failedAt(now + 7_200_000, "u", "r2");
      expect(await alerter().deliver(QUEUE, LEASE, ALWAYS)).toBe(false);
      expect(heard).toEqual(["r1", "r2"]);
    });
  });
});
