import { type NodeInfo, Store } from "@carillon/store";
import { type RedisServer, startRedis } from "@carillon/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { nodeHeartbeat } from "../src/heartbeat.js";
import { ServerClock } from "../src/loop/server-clock.js";
import { settle } from "../src/options.js";

const HOUR = 3_600_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
});

it("nodes that ended long ago leave the list, also if the clock of Redis went back since their last beat", async () => {
  const store = new Store({ connection: redis.url });
  const clock = new ServerClock();
  const sentAt = clock.mark();
  const now = await store.serverTime();
  clock.observe(now, sentAt);
  const other = nodeHeartbeat(store, clock, settle({ store, nodeId: "other" }), () => undefined);
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
  const heartbeat = nodeHeartbeat(store, clock, settle({ store, nodeId: "n1" }), () => "held");
  await heartbeat.start();
  const nodes = await store.registry.nodes();
  expect(nodes.map(({ id }) => id)).toEqual(["ahead", "n1", "recent"]);
  // The beat says why the node does nothing.
  expect(nodes[1]).toMatchObject({ ready: false, why: "held" });
  await heartbeat.stop();
  expect((await store.registry.nodes()).map(({ id }) => id)).toEqual(["ahead", "recent"]);
  await store.close();
});
