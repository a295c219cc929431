import { type Heartbeat, type NodeInfo, Store } from "@carillon/store";
import { internalsOf } from "@carillon/store/internal";
import { eventually } from "@carillon/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ownRedis } from "../../../test/helpers.js";
import { nodeHeartbeat } from "../src/heartbeat.js";
import { ServerClock } from "../src/loop/server-clock.js";
import { settle } from "../src/options.js";
import { RoundTrips } from "../src/round-trips.js";

const HOUR = 3_600_000;

const redis = ownRedis();

it("nodes that ended long ago leave the list, also if the clock of Redis went back since their last beat", async () => {
  const store = new Store({ connection: redis.url });
  const clock = new ServerClock();
  const sentAt = clock.mark();
  const now = await store.serverTime();
  clock.observe(now, sentAt);
  const other = nodeHeartbeat(
    ...([store, clock, settle({ store, nodeId: "other" }), new RoundTrips()] as const),
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
    ...([store, clock, settle({ store, nodeId: "n1" }), new RoundTrips()] as const),
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

describe("a node whose Redis changes under it", () => {
  let store: Store;
  let heartbeat: Heartbeat;
  const logged: [object, string][] = [];
  const logger = {
    debug() {},
    info() {},
    warn() {},
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
    const settings = settle({ store, nodeId: "n1", heartbeatEvery: "5m", logger });
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

  it("beats again within a second after one that failed, however rare its beats are", async () => {
    await admin("CONFIG", "SET", "min-replicas-to-write", 1);
    await heartbeat.beat();
    expect(heartbeat.trouble).toMatchObject({ code: "REDIS_UNAVAILABLE" });
    await admin("CONFIG", "SET", "min-replicas-to-write", 0);
    await eventually(() => expect(heartbeat.trouble).toBeUndefined());
  });
});
