import { operatorOf } from "@carillon/ops";
import { Client, defineTask, Worker } from "@carillon/sdk";
import { eventually, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { SILENT } from "../../../test/helpers.js";
import { killNodes, Node } from "./helpers.js";

afterEach(killNodes);

it("metrics count the ended runs of all processes, and omit them while Redis does not answer", async () => {
  const server = await startRedis({ appendonly: true });
  const client = new Client({ connection: server.url });
  await client.put({ id: "a", type: "noop", queue: "q", schedule: { every: "1h" } });
  const node = new Node({ REDIS_URL: server.url });
  await node.ready(200);
  const of = (outcome: string) => node.metric(`carillon_runs_total{queue="q",outcome="${outcome}"}`);
  expect(await of("succeeded")).toBe(0);
  const noop = defineTask("noop", { queue: "q", payload: z.object({}), handler: () => {} });
  const worker = new Worker({
    connection: server.url,
    types: [noop],
    logger: SILENT,
  });
  await worker.start();
  await client.trigger("a");
  await eventually(async () => expect(await of("succeeded")).toBe(1));
  expect(await of("failed")).toBe(0);
  await worker.stop();
  await client.close();

  server.pause();
  expect(await of("succeeded")).toBeUndefined();
  expect(await node.metric('carillon_overdue_seconds{queue="q"}')).toBeUndefined();
  expect(await node.metric('carillon_lateness_seconds_count{queue="q"}')).toBe(0);
  server.continue();
  await eventually(async () => expect(await of("succeeded")).toBe(1));
  await server.stop();
});

it("/ready reports that Redis accepts no writes", async () => {
  const server = await startRedis({ appendonly: true });
  const admin = new Redis(server.url);
  const node = new Node({ REDIS_URL: server.url, CARILLON_HEARTBEAT_MS: "100" });
  await node.ready(200);
  await admin.call("REPLICAOF", "127.0.0.1", "1");
  // The connection may have been cut.
  await eventually(async () => expect((await node.ready(503)).why).toContain("read-only"));
  await admin.call("REPLICAOF", "NO", "ONE");
  await node.ready(200);
  admin.disconnect();
  await server.stop();
});

it.each([
  ["has too few replicas", "min-replicas-to-write", "1", "0", "REDIS_UNAVAILABLE"],
  ["is out of memory", "maxmemory", "1", "0", "REDIS_OUT_OF_MEMORY"],
])(
  "metrics and the list of nodes report that nothing is claimed: Redis %s",
  async (_, setting, on, off, code) => {
    const server = await startRedis({ appendonly: true });
    const admin = new Redis(server.url);
    const client = new Client({ connection: server.url });
    const node = new Node({ REDIS_URL: server.url, CARILLON_HEARTBEAT_MS: "100" });
    await node.ready(200);
    await client.put({ id: "a", type: "noop", queue: "q", schedule: { every: "1s" }, overlap: "allow" });
    const last = () => node.metric('carillon_last_claim_timestamp_seconds{queue="q"}');
    const failed = () => node.metric(`carillon_claims_failed_total{queue="q",code="${code}"}`);
    await eventually(async () => expect(await last()).toBeGreaterThan(0));
    expect(await node.metric('carillon_ready{reason=""}')).toBe(1);
    expect(await failed()).toBe(0);

    await admin.config("SET", setting, on);
    await eventually(async () => {
      expect(await node.metric('carillon_overdue_seconds{queue="q"}')).toBeGreaterThan(1);
      expect(await node.metric(`carillon_ready{reason="${code}"}`)).toBe(0);
      expect(await failed()).toBeGreaterThan(0);
      const [listed] = (await operatorOf(client).nodes.list()).nodes;
      expect(listed).toMatchObject({ ready: false, silentMs: expect.any(Number) });
    });
    expect(await node.metric('carillon_ready{reason=""}')).toBeUndefined();
    expect(await node.ready(503)).toMatchObject({ ready: false, reason: code });

    const before = await last();
    await admin.config("SET", setting, off);
    await node.ready(200);
    await eventually(async () => {
      expect(await last()).toBeGreaterThan(before ?? Number.NaN);
      expect(await node.metric('carillon_overdue_seconds{queue="q"}')).toBeLessThan(1);
      expect((await operatorOf(client).nodes.list()).nodes).toMatchObject([{ ready: true, state: "ready" }]);
    });
    await client.close();
    admin.disconnect();
    await server.stop();
  },
);

describe("a node that stops", () => {
  it("reports it on /ready, and ends at once with 130 on a second signal", async () => {
    const frozen = await startRedis({ appendonly: true });
    const node = new Node({ REDIS_URL: frozen.url });
    await node.ready(200);
    frozen.pause();
    node.signal("SIGTERM");
    await node.logged("stopping");
    expect(await node.ready(503)).toEqual({ ready: false, reason: "STOPPING", why: "stopping" });
    node.signal("SIGTERM");
    expect(await node.exit).toEqual([130, null]);
    expect(node.log.at(-1)).toMatchObject({ msg: "second signal: exiting at once", signal: "SIGTERM" });
    await frozen.stop();
  });

  it("does not wait for a Redis that is down", async () => {
    const node = new Node({ REDIS_URL: "redis://127.0.0.1:1" });
    expect(await node.logged("waiting for Redis")).toMatchObject({
      error: expect.stringContaining("ECONNREFUSED"),
    });
    node.signal("SIGTERM");
    expect(await node.exit).toEqual([0, null]);
  });
});
