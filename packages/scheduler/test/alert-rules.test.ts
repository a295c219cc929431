import { parseTask } from "@carillon/core";
import { messagesOf, parsePolicies } from "@carillon/core/internal";
import { type Alert, Coverage, readStatus, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
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
  const setDefaults = (...on: string[]) =>
    store.registry.setDefaults("all", parsePolicies({ alerts: [{ on, url: URL }] as never }));
  async function deliveries() {
    const { tasks } = await store.tasks.list({ queue: DELIVERIES }, 10);
    return tasks.map(({ definition }) => definition);
  }
  const payloads = async () =>
    (await deliveries()).flatMap(({ payload }) => {
      const { url, bodies = [] } = messagesOf(payload as never);
      return bodies.map((body) => ({ url, body: body as { kind: string } }));
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
    expect(await recorded()).toEqual([{ kind: "failed", task, run: "r1", at: 1, to: ["example.com"] }]);
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

  it("collects the alerts of a quiet time in one digest at its end", async () => {
    const quiet = [{ schedule: { cron: "0 0 * * *", timezone: "UTC" }, for: "1d" }];
    // Quiet times on consecutive days form a chain, which ends at midnight.
    await put("t", { alerts: [{ on: ["failed"], url: URL, quiet }] });
    await failed("r1", "r2");
    await deliver();
    // Delivered again, because the node died before it could remove the alert.
    await failed("r2");
    await deliver();
    expect(await payloads()).toMatchObject([
      { body: { kind: "digest", more: 0, alerts: [{ run: "r1" }, { run: "r2" }] } },
    ]);
    const [delivery] = await deliveries();
    expect(delivery?.schedule).toEqual({ at: expect.stringMatching(/T00:00:00Z$/) });
  });

  it("raises the reasons of the status once they last, and again when they are over", async () => {
    await setDefaults("no-worker", "stopped", "recovered");
    await put("due", { schedule: { at: (await store.serverTime()) + 50 } });
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
    expect(await store.alerts.incidents()).toMatchObject([
      { kind: "no-worker", code: "NO_WORKER", queue: QUEUE, message: "no worker works the queue bells." },
    ]);
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
