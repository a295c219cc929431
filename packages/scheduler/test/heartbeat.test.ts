import { type Heartbeat, type NodeInfo, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { nodeHeartbeat } from "../src/heartbeat.js";
import { ServerClock } from "../src/loop/server-clock.js";
import { checked } from "../src/options.js";
import { RoundTrips } from "../src/round-trips.js";
import { SafetyCheck } from "../src/safety-check.js";

const HOUR = 3_600_000;

const redis = ownRedis();

it("nodes that ended long ago leave the list, also if the clock of Redis went back since their last beat", async () => {
  const store = new Store({ connection: redis.url });
  const clock = new ServerClock();
  const sentAt = clock.mark();
  const now = await store.serverTime();
  clock.observe(now, sentAt);
  const other = nodeHeartbeat(
    ...([store, clock, checked({ store, nodeId: "other" }), new RoundTrips()] as const),
    () => undefined,
  );
  await other.start();
  const [info] = await store.registry.nodes();
  await other.stop();
  const beats = {
    old: now - 2 * HOUR,
    recent: now - HOUR / 2,
    ahead: now + HOUR / 2,
    future: now + 2 * HOUR,
  };
  for (const [id, beat] of Object.entries(beats))
    await store.registry.beat({ ...(info as NodeInfo), id, beat });
  const heartbeat = nodeHeartbeat(
    ...([store, clock, checked({ store, nodeId: "n1" }), new RoundTrips()] as const),
    () => "held",
  );
  await heartbeat.start();
  const nodes = await store.registry.nodes();
  expect(nodes.map(({ id }) => id)).toEqual(["ahead", "n1", "recent"]);
  // The beat says why the node does nothing.
  expect(nodes[1]).toMatchObject({ ready: false, why: "held" });
  await heartbeat.stop();
  expect((await store.registry.nodes()).map(({ id }) => id)).toEqual(["ahead", "recent"]);
  await store.close();
});

it("two nodes with one id are on the list, and neither is missing when the other stops", async () => {
  const store = new Store({ connection: redis.url });
  const now = await store.serverTime();
  const clock = new ServerClock();
  clock.observe(now, clock.mark());
  const settings = checked({ store, nodeId: "twin" });
  const [one, other] = [0, 1].map(() =>
    nodeHeartbeat(store, clock, settings, new RoundTrips(), () => undefined),
  ) as [Heartbeat, Heartbeat];
  await one.start();
  await other.start();
  // A node whose last beat is older than the start of its namesake may have ended before.
  await one.beat();
  const twins = async () => (await store.registry.nodes()).filter(({ id }) => id === "twin");
  const nodes = await twins();
  expect(nodes).toHaveLength(2);
  expect(new Set(nodes.map(({ instance }) => instance)).size).toBe(2);
  await other.stop();
  expect(await twins()).toHaveLength(1);
  // One that was killed is replaced by its next start.
  const [left] = (await twins()) as [NodeInfo];
  await store.registry.beat({ ...left, instance: "next", started: left.beat + 1, beat: left.beat + 2 });
  expect((await twins()).map(({ instance }) => instance)).toEqual(["next"]);
  const listed = async () => (await store.registry.listedNodes()).filter(({ id }) => id === "twin");
  expect(await listed()).toHaveLength(2);
  await store.registry.removeNode("twin");
  expect(await listed()).toEqual([]);
  await one.stop();
  await store.close();
});

describe("a node whose Redis changes under it", () => {
  let store: Store;
  let heartbeat: Heartbeat;
  const logged: [object, string][] = [];
  const warned: [object, string][] = [];
  const logger = {
    debug() {},
    info() {},
    warn: (...line: [object, string]) => warned.push(line),
    error: (...line: [object, string]) => logged.push(line),
  };
  const admin = (command: string, ...args: (string | number)[]) =>
    internalsOf(store).link.client.call(command, ...args);
  const own = async () => (await store.registry.nodes())[0];
  beforeEach(async () => {
    logged.length = 0;
    store = new Store({ connection: redis.url });
    await store.serverTime();
    await admin("FLUSHALL");
    const clock = new ServerClock();
    const sentAt = clock.mark();
    clock.observe(await store.serverTime(), sentAt);
    const settings = checked({ store, nodeId: "n1", heartbeatEvery: "5m", logger });
    heartbeat = nodeHeartbeat(store, clock, settings, new RoundTrips(), () => undefined);
    await heartbeat.start();
    for (let i = 0; i < 3; i++) await heartbeat.beat();
    expect(await own()).toMatchObject({ ready: true, roundTrip: expect.any(Number) });
    expect((await own())?.lost).toBeUndefined();
  });
  afterEach(async () => {
    await heartbeat.stop();
    await admin("CONFIG", "SET", "min-replicas-to-write", 0);
    await store.close();
  });

  it("reports that it came back empty", async () => {
    await admin("FLUSHALL");
    await heartbeat.beat();
    expect(await own()).toMatchObject({ lost: { at: expect.any(Number) } });
    expect((await own())?.lost?.to).toBeUndefined();
    await heartbeat.beat();
    expect((await own())?.lost).toBeDefined();
    expect(logged).toEqual([[{ namespace: "carillon" }, "Redis came back empty"]]);
  });

  it("reports that it went back to an older state, and of which time that is", async () => {
    const { history } = internalsOf(store).keys;
    const to = Date.parse("2026-01-01T00:00:00Z");
    await admin("ZADD", history, 3, "beats", to, "clock");
    await heartbeat.beat();
    expect(await own()).toMatchObject({ lost: { to } });
    expect(logged.map(([, text]) => text)).toEqual(["Redis went back to an older state"]);
  });

  it("reports a setting that changed, until it is mended, and not one that it started with", async () => {
    await admin("CONFIG", "SET", "appendonly", "yes");
    await admin("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    warned.length = 0;
    await heartbeat.beat();
    const { unsafe } = (await own()) ?? {};
    expect(unsafe).toEqual([{ code: "EVICTION", policy: "allkeys-lru", since: expect.any(Number) }]);
    await heartbeat.beat();
    expect((await own())?.unsafe).toEqual(unsafe);
    expect(warned).toEqual([
      [{ what: "EVICTION" }, "maxmemory-policy is allkeys-lru: Redis may drop tasks and jobs."],
    ]);
    await admin("CONFIG", "SET", "maxmemory-policy", "noeviction");
    await admin("CONFIG", "SET", "appendonly", "no");
    await heartbeat.beat();
    expect((await own())?.unsafe).toMatchObject([{ code: "AOF_OFF" }]);
    const safety = new SafetyCheck(store, logger);
    expect(await safety.atStart()).toEqual([{ code: "AOF_OFF" }]);
    expect(await safety.changed(0)).toEqual([]);
    await admin("CONFIG", "SET", "appendonly", "yes");
    await heartbeat.beat();
    expect((await own())?.unsafe).toBeUndefined();
  });

  it("beats again within a second after one that failed, however rare its beats are", async () => {
    await admin("CONFIG", "SET", "min-replicas-to-write", 1);
    await heartbeat.beat();
    expect(heartbeat.trouble).toMatchObject({ code: "REDIS_UNAVAILABLE" });
    await admin("CONFIG", "SET", "min-replicas-to-write", 0);
    await eventually(() => expect(heartbeat.trouble).toBeUndefined());
  });
});
