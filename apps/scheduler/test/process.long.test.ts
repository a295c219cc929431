import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { operatorOf } from "@carillon/ops";
import { Client } from "@carillon/sdk";
import { internalsOf, storeOf } from "@carillon/sdk/internal";
import { eventually, freePort, startRedis } from "@carillon/testing";
import { afterEach, describe, expect, it } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { killNodes, MAIN, Node } from "./helpers.js";

const redis = sharedRedis();
afterEach(killNodes);

describe("a node that cannot start", () => {
  it("ends with 2 and names each invalid variable, without printing a password", async () => {
    const node = new Node({ REDIS_URL: "http://user:secret@host", CARILLON_PORT: "many" });
    expect(await node.exit).toEqual([2, null]);
    expect(node.log).toMatchObject([
      { name: "carillon", level: 60, variable: "REDIS_URL" },
      { name: "carillon", level: 60, variable: "CARILLON_PORT" },
    ]);
    expect(node.log[0]?.["msg"]).toMatch(/^REDIS_URL: not a Redis URL/);
    expect(JSON.stringify(node.log)).not.toContain("secret");
  });

  it.each([
    [["--help"], 0, /REDIS_URL/],
    [["-V"], 0, /^\d+\.\d+\.\d+/],
    [["--redis", "redis://localhost:1"], 2, /got "--redis"/],
  ])("takes no arguments: %j ends with %d", async (args, code, says) => {
    // REDIS_URL is set, so that the program would start.
    const env = { PATH: process.env["PATH"], REDIS_URL: redis.url, CARILLON_PORT: "0" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], {
      env,
      encoding: "utf8",
    });
    expect(status).toBe(code);
    expect(code === 0 ? stdout : stderr).toMatch(says);
  });

  it("ends with 2 when the port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    const port = await eventually(() => (other.address() as { port: number } | null)?.port ?? false);
    const quiet = { CARILLON_LOG_LEVEL: "fatal", CARILLON_HEARTBEAT: "not known here" };
    const node = new Node({ REDIS_URL: redis.url, CARILLON_PORT: String(port), ...quiet });
    expect(await node.exit).toEqual([2, null]);
    other.close();
    expect(node.log).toMatchObject([{ variable: "CARILLON_PORT", code: "EADDRINUSE" }]);
  });

  it("ends with 2 when there is no such host", async () => {
    const node = new Node({ REDIS_URL: redis.url, CARILLON_HOST: "no host" });
    expect(await node.exit).toEqual([2, null]);
    const message = expect.stringMatching(
      /^CARILLON_HOST: cannot listen: .*ENOTFOUND no host\. Give an address/,
    );
    expect(node.log).toMatchObject([{ variable: "CARILLON_HOST", code: "ENOTFOUND", msg: message }]);
  });

  it("ends with 3 on a Redis that would lose tasks, unless told to warn", async () => {
    const forgetful = await startRedis({ config: { "maxmemory-policy": "allkeys-lru" } });
    const strict = new Node({ REDIS_URL: forgetful.url });
    expect(await strict.exit).toEqual([3, null]);
    expect(strict.log.at(-1)).toMatchObject({ level: 60, code: "REDIS_UNSAFE", remedy: expect.any(String) });

    const lenient = new Node({ REDIS_URL: forgetful.url, CARILLON_UNSAFE_REDIS: "warn" });
    await lenient.ready(200);
    expect(lenient.log.filter(({ level }) => level === 40).map(({ what }) => what)).toEqual([
      "AOF_OFF",
      "EVICTION",
      "empty",
    ]);
    lenient.signal("SIGTERM");
    expect(await lenient.exit).toEqual([0, null]);
    await forgetful.stop();
  });
});

describe("a running node", () => {
  it.runIf(existsSync("/dev/full"))("continues if its log cannot be written", async () => {
    const port = await freePort();
    const child = spawn(process.execPath, [MAIN], {
      env: { PATH: process.env["PATH"], REDIS_URL: redis.url, CARILLON_PORT: String(port) },
      stdio: ["ignore", openSync("/dev/full", "w"), "ignore"],
    });
    const ended = once(child, "exit");
    try {
      const ready = async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
      await eventually(() => ready().catch(() => false));
      child.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("listens before Redis runs, and reports why it is not ready each time Redis is down", async () => {
    const flaky = await startRedis({ appendonly: true });
    await flaky.kill();
    const node = new Node({ REDIS_URL: flaky.url });
    expect(await node.get("/health")).toEqual({ status: 200, text: '{"status":"ok"}' });
    await eventually(async () => expect((await node.ready(503)).why).toContain("ECONNREFUSED"));
    expect(await node.metric('carillon_ready{reason="REDIS_UNAVAILABLE"}')).toBe(0);

    await flaky.start();
    expect(await node.ready(200)).toEqual({ ready: true });
    expect(await node.metric('carillon_ready{reason=""}')).toBe(1);
    await flaky.kill();
    expect((await node.ready(503)).ready).toBe(false);
    await flaky.start();
    await node.ready(200);

    node.signal("SIGINT");
    expect(await node.exit).toEqual([0, null]);
    await flaky.stop();
  });

  it("reports that it waits before Redis has answered for the first time", async () => {
    const frozen = await startRedis({ appendonly: true });
    frozen.pause();
    const node = new Node({ REDIS_URL: frozen.url });
    expect(await node.ready(503)).toEqual({ ready: false, reason: "STARTING", why: "waiting for Redis" });
    await frozen.stop();
  });

  it("counts its work, and warns of a misspelt variable", async () => {
    const namespace = "counted";
    const client = new Client({ connection: redis.url, namespace });
    const own = { CARILLON_NAMESPACE: namespace, CARILLON_NODE_ID: "n1", CARILLON_HEARTBEAT: "1000" };
    const node = new Node({ REDIS_URL: redis.url, ...own });
    await node.ready(200);
    expect(await node.logged(/Did you mean CARILLON_HEARTBEAT_MS/)).toMatchObject({ level: 40 });
    expect(await node.logged("listening")).toMatchObject({ host: "127.0.0.1", port: expect.any(Number) });
    await client.put({ id: "a", type: "noop", queue: "q", schedule: { every: "1s" } });
    // No worker runs: the first occurrence is enqueued, one waits, and the others are behind.
    const of = (labels: string) => node.metric(`carillon_occurrences_total{${labels}}`);
    await eventually(async () => {
      expect(await of('outcome="skipped",trigger="",reason="behind"')).toBeGreaterThan(0);
    });
    expect(await of('outcome="enqueued",trigger="schedule",reason=""')).toBe(1);
    expect(await node.metric('carillon_lateness_seconds_count{queue="q"}')).toBe(1);
    expect(await node.metric('carillon_lateness_seconds_bucket{le="5",queue="q"}')).toBe(1);
    expect(Math.abs((await node.metric("carillon_clock_offset_seconds")) ?? Number.NaN)).toBeLessThan(5);
    expect(await node.metric("carillon_mutex_lost_total")).toBe(0);
    expect(await node.metric("process_start_time_seconds")).toBeGreaterThan(0);
    expect((await operatorOf(client).nodes.list()).nodes).toMatchObject([{ id: "n1", alive: true }]);

    node.signal("SIGTERM");
    expect(await node.exit).toEqual([0, null]);
    const end = [{ msg: "stopping", signal: "SIGTERM" }, { msg: "stopped" }];
    expect(node.log.slice(-2)).toMatchObject(end);
    expect((await operatorOf(client).nodes.list()).nodes).toEqual([]);
    await client.close();
  });

  it("obeys the environment's re-read interval and grace", async () => {
    const namespace = "strict";
    const client = new Client({ connection: redis.url, namespace });
    // Publishes on a channel that no node listens to.
    Object.assign(internalsOf(storeOf(client)).keys, { wake: "{nobody}:wake" });
    const strict = { CARILLON_REREAD_MS: "50", CARILLON_GRACE_MS: "0" };
    const node = new Node({ REDIS_URL: redis.url, CARILLON_NAMESPACE: namespace, ...strict });
    await node.ready(200);
    const task = { id: "a", type: "noop", queue: "q", schedule: { every: "1s" }, catchUp: "skip" } as const;
    await client.put(task);
    await eventually(async () => {
      const missed = 'carillon_occurrences_total{outcome="skipped",trigger="",reason="missed"}';
      expect(await node.metric(missed)).toBeGreaterThan(0);
    });
    await client.close();
  });
});
