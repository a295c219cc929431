import { CarillonError, parseTask } from "@carillon/core";
import { causeOf, messagesOf, parsePolicies } from "@carillon/core/internal";
import { type Alert, Coverage, readStatus, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually, type VirtualClock, virtualStore } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeInfo, SILENT, sharedRedis } from "../../../test/helpers.js";
import { AlertWatch } from "../src/alerts/alert-watch.js";
import { Alerter } from "../src/alerts/alerter.js";
import { checked } from "../src/options.js";
import { LEASE } from "./claiming.js";

const [QUEUE, DELIVERIES] = ["bells", "carillon-alerts"];
const URL = "https://example.com/";
let serial = 0;

describe("alert rules", () => {
  const redis = sharedRedis();
  let store: Store;
  let heard: Alert[];
  beforeEach(() => {
    serial += 1;
    heard = [];
    store = new Store({ connection: redis.url, namespace: `rules${serial}` });
  });
  afterEach(async () => {
    await store.close();
  });

  const settings = (nodeId: string) =>
    checked({ store, nodeId, logger: SILENT, onAlert: (alert) => void heard.push(alert) });
  const deliver = (queue = QUEUE) => new Alerter(store, settings("n1")).deliver(queue, LEASE, () => true);
  async function put(id: string, more: object = {}): Promise<void> {
    const parsed = parseTask({ id, type: "noop", queue: QUEUE, schedule: { every: "1h" }, ...more });
    await store.tasks.put(QUEUE, [parsed]);
  }
  async function failed(...runs: string[]): Promise<void> {
    const { alerts } = internalsOf(store).keys.queue(QUEUE);
    const lines = runs.map((run) => JSON.stringify({ kind: "failed", task: "system/t", run, at: 1 }));
    await internalsOf(store).link.ask((client) => client.rpush(alerts, ...lines));
  }
  async function raised(alert: object): Promise<void> {
    const { alerts } = internalsOf(store).keys.queue(QUEUE);
    const line = JSON.stringify({ task: "system/t", at: 1, ...alert });
    await internalsOf(store).link.ask((client) => client.rpush(alerts, line));
  }
  const setDefaults = (...on: string[]) =>
    store.registry.setDefaults("all", parsePolicies({ alerts: [{ on, url: URL }] as never }));
  async function deliveries() {
    const { tasks } = await store.tasks.list({ queue: DELIVERIES }, 10);
    return tasks.map(({ definition }) => definition);
  }
  const payloads = async () =>
    (await deliveries()).flatMap(({ payload }) => {
      const { url, bodies = [] } = messagesOf(payload as never);
      return bodies.map((body) => ({ url, body: body as { kind: string; run?: string; alerts?: object[] } }));
    });
  const recorded = async () =>
    (await store.alertLog.page(undefined, 10)).map(({ entry }) => JSON.parse(entry));

  it("sends alerts of tasks without alerts to the defaults of the moment", async () => {
    await put("t");
    await setDefaults("failed");
    await failed("r1");
    await deliver();
    expect(await payloads()).toMatchObject([{ url: URL, body: { run: "r1" } }]);
    const task = { queue: QUEUE, owner: "system", id: "t" };
    expect(await recorded()).toMatchObject([{ kind: "failed", task, run: "r1", at: 1, to: ["example.com"] }]);
  });

  it("records a silenced alert and delivers it to nobody", async () => {
    await put("t", { alerts: [{ on: ["failed"], url: URL }] });
    const now = await store.serverTime();
    await store.alerts.silence({ id: "s1", kind: "failed", until: now + 60_000, created: now });
    await store.alerts.silence({ id: "s2", all: true, until: now - 1, created: now - 2 });
    await failed("r1");
    expect(await deliver()).toBe(false);
    expect([heard, await payloads()]).toEqual([[], []]);
    expect(await recorded()).toMatchObject([{ run: "r1", silenced: "s1" }]);
    // Deletes silences that have ended.
    const { silences } = internalsOf(store).keys;
    expect(await internalsOf(store).link.ask((client) => client.hkeys(silences))).toEqual(["s1"]);
  });

  it("collects the alerts of a quiet time until its end", async () => {
    const quiet = [{ schedule: { cron: "0 0 * * *", timezone: "UTC" }, for: "1d" }];
    // Quiet times on consecutive days form a chain, which ends at midnight.
    await put("t", { alerts: [{ on: ["failed"], url: URL, quiet }] });
    await failed("r1", "r2");
    await deliver();
    expect(await payloads()).toEqual([]);
    const [one, ...others] = await store.alerts.collected();
    expect([others, new Date(one?.due ?? 0).toISOString()]).toEqual([
      [],
      expect.stringMatching(/T00:00:00.000Z$/),
    ]);
  });

  describe("a storm", () => {
    const dead = new CarillonError("REDIS_UNAVAILABLE", "dead.");
    let clock: VirtualClock;
    const later = (ms: number) => clock.advance(ms);
    beforeEach(async () => {
      await store.close();
      const queues = [QUEUE, DELIVERIES, ...runs(10)];
      ({ store, clock } = await virtualStore({ connection: redis.url, namespace: `rules${serial}`, queues }));
    });
    const digests = async () => {
      const nodes = ["n1", "n2"].map((id) => new Alerter(store, settings(id)));
      await Promise.all(nodes.map((node) => node.sendDigests(() => true)));
      return (await payloads()).map(({ body }) => body).filter(({ kind }) => kind === "digest");
    };
    const runs = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);

    it("is three messages and a digest, which one node of two sends", async () => {
      await put("t", { alerts: [{ on: ["failed"], url: URL }] });
      await failed(...runs(10));
      await deliver();
      expect(await payloads()).toHaveLength(3);
      expect(await digests()).toEqual([]);
      await later(60_000);
      expect(await digests()).toMatchObject([{ alerts: [{ kind: "failed", alerts: 7, tasks: 1 }] }]);
      expect(await digests()).toHaveLength(1);
      expect(heard).toHaveLength(10);
    });

    it("loses nothing and repeats nothing when nodes die at any step", async () => {
      await put("t", { alerts: [{ on: ["failed"], url: URL }] });
      // The node has collected them, and dies before it can remove them.
      await failed(...runs(10));
      const { removeDelivered } = store.alerts;
      store.alerts.removeDelivered = async () => Promise.reject(dead);
      await expect(deliver()).rejects.toThrow("dead");
      store.alerts.removeDelivered = removeDelivered;
      await deliver();
      expect(await payloads()).toHaveLength(3);
      await later(60_000);
      // It has taken the digest out, and dies before it can enqueue it.
      const { enqueueNow } = store.claims;
      store.claims.enqueueNow = async () => Promise.reject(dead);
      const send = () => new Alerter(store, settings("n1")).sendDigests(() => true);
      await expect(send()).rejects.toThrow("dead");
      expect(await payloads()).toHaveLength(3);
      // An alert comes meanwhile: it is not in that digest.
      store.claims.enqueueNow = enqueueNow;
      await failed("late");
      await deliver();
      // It has enqueued the digest, and dies before it can note that.
      const { collect } = store.alerts;
      let calls = 0;
      store.alerts.collect = async (...all) => {
        calls += 1;
        if (calls % 2 === 0) throw dead;
        return collect.apply(store.alerts, all) as never;
      };
      await expect(send()).rejects.toThrow("dead");
      store.alerts.collect = collect;
      expect(await digests()).toMatchObject([{ alerts: [{ alerts: 7 }] }]);
      await later(360_000);
      const told = (await digests()).flatMap(({ alerts = [] }) => alerts);
      expect(told).toMatchObject([{ alerts: 7 }, { alerts: 1 }]);
    });

    it("over ten queues is one for a destination of all owners, and one each for what owners name themselves", async () => {
      await setDefaults("failed");
      const [queues, owners] = [runs(10), ["acme", "beta"]];
      for (const queue of queues)
        for (const owner of owners) {
          const own = owner === "beta" && { alerts: [{ on: ["failed"], url: URL }] };
          await store.tasks.put(queue, [
            parseTask({ id: "t", type: "noop", queue, owner, schedule: { every: "1h" }, ...own } as never),
          ]);
          const line = JSON.stringify({
            kind: "failed",
            task: `${owner}/t`,
            run: `${queue}-${owner}`,
            at: 1,
          });
          const { alerts } = internalsOf(store).keys.queue(queue);
          await internalsOf(store).link.ask((client) => client.rpush(alerts, line));
        }
      await Promise.all(queues.map((queue) => deliver(queue)));
      expect(await payloads()).toHaveLength(6);
      await later(60_000);
      expect((await digests()).map(({ alerts: [one] = [] }) => one)).toMatchObject([
        { alerts: 7, tasks: 10, owners: 1, queues: 10 },
        { alerts: 7, tasks: 10, owners: 1, queues: 10 },
      ]);
    });

    it("is sent although the digest of another destination cannot be", async () => {
      await put("t", { alerts: [{ on: ["failed"], url: URL }] });
      await failed(...runs(10));
      await deliver();
      const outgoing = { id: "a b", owner: "system", type: "noop", payload: {} };
      const state = { groups: {}, seen: [], to: {}, outgoing };
      await store.alerts.collect("0", () => ({ state, due: 0, answer: undefined }));
      await store.alerts.collect("1", () => ({ state: { foreign: 1 }, due: 0, answer: undefined }));
      await later(60_000);
      expect(await digests()).toHaveLength(1);
    });

    it("leaves as many places of the minute as its destination says", async () => {
      await put("t", { alerts: [{ on: ["failed"], url: URL, perMinute: 5 }] });
      await failed(...runs(10));
      await deliver();
      expect(await payloads()).toHaveLength(5);
      expect(() => parsePolicies({ alerts: [{ on: ["failed"], url: URL, perMinute: -1 }] })).toThrow(
        /^alerts\[0\]\.perMinute/,
      );
    });

    it("forgets a destination a day after its last alert, and the queue of alerts with it", async () => {
      await put("t", { alerts: [{ on: ["failed"], url: URL }] });
      await failed("r1");
      await deliver();
      const { next } = internalsOf(store).keys.queue(DELIVERIES);
      const armed = () => internalsOf(store).link.ask((client) => client.zscore(next, "d"));
      expect(await armed()).not.toBeNull();
      await later(43_200_000);
      await raised({ kind: "failed", run: "r2", error: "Error: no ink" });
      await deliver();
      await later(43_300_000);
      await digests();
      // The second cause is not a day old.
      expect(await store.alerts.collected()).toHaveLength(1);
      await later(43_300_000);
      await digests();
      expect([await store.alerts.collected(), await armed()]).toEqual([[], null]);
    });
  });

  it("silences the alerts of a cause, with their ends, until it is gone", async () => {
    await put("t", { alerts: [{ on: ["failed", "slow", "recovered"], url: URL }] });
    const created = await store.serverTime();
    const cause = causeOf("failed", "Error: no paper").id;
    const silence = { id: "s1", cause, until: created + 60_000, untilGone: true as const, created };
    await store.alerts.silence(silence);
    await raised({ kind: "failed", run: "r1", error: "Error: no paper\n    at x" });
    await raised({ kind: "failed", run: "r2", error: "Error: no ink" });
    await raised({ kind: "slow", run: "r1" });
    await deliver();
    const sent = (await payloads()).map(({ body }) => `${body.kind} ${body.run}`);
    expect(sent.sort()).toEqual(["failed r2", "slow r1"]);
    expect(await recorded()).toMatchObject([
      { kind: "slow" },
      { run: "r2" },
      { run: "r1", cause, silenced: "s1" },
    ]);
    // A silenced alert prolongs it; other alerts do not, and nothing brings one back that was ended.
    const [prolonged] = await store.alerts.silences(created);
    expect((prolonged?.until ?? 0) - created).toBeGreaterThanOrEqual(86_400_000);
    await store.alerts.unsilence("s1");
    await store.alerts.prolong("s1", created + 1_000_000);
    expect(await store.alerts.silences(created)).toEqual([]);
  });

  it("raises the reasons of the status once they last, and again when they are over", async () => {
    const on = ["no-worker", "stopped", "recovered"];
    await store.registry.setDefaults(
      "all",
      parsePolicies({ alerts: [{ on, url: URL, perMinute: 10 }] as never }),
    );
    await put("due", { schedule: { at: (await store.serverTime()) + 2_000 } });
    const now = await store.serverTime();
    for (const id of ["n1", "n2"])
      await store.registry.beat(nodeInfo(id, { beat: now + 150_000, every: 200_000 }));
    const watches = ["n1", "n2"].map((id) => new AlertWatch(store, settings(id)));
    await eventually(async () => {
      const { reasons } = await readStatus({ store, coverage: new Coverage(store) });
      expect(reasons.map(({ code }) => code)).toEqual(["NO_WORKER", "OVERDUE"]);
    });
    const check = async (minute: number) => {
      for (const watch of watches) await watch.check(now + minute * 60_000);
      const waiting = await store.alerts.waiting(DELIVERIES);
      return waiting.map(({ alert: { kind, queue, ended = [] } }) => [kind, queue, ...ended].join(" "));
    };
    expect(await check(0)).toEqual([]);
    expect(await check(1)).toEqual(["no-worker bells"]);
    // As BullMQ itself pauses: nothing says that it is on purpose.
    const { link, keys } = internalsOf(store);
    await link.client.hset(`${keys.queue(QUEUE).bull}meta`, "paused", 1);
    expect(await check(2)).toEqual(["no-worker bells"]);
    expect(await check(3)).toEqual(["no-worker bells", "stopped bells"]);
    await store.queues.resume(QUEUE);
    await store.deleteQueue(QUEUE);
    const ended = (await check(4)).slice(2).sort();
    expect(ended).toEqual(["recovered bells no-worker", "recovered bells stopped"]);
    expect(await store.registry.queues()).toEqual([DELIVERIES]);
    await deliver(DELIVERIES);
    expect(heard).toHaveLength(4);
    const kinds = (await payloads()).map(({ body }) => body.kind);
    expect(kinds.sort()).toEqual(["no-worker", "recovered", "recovered", "stopped"]);
  });
});
