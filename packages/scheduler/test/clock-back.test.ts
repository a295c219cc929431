import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Scheduler } from "@carillon/scheduler";
import { Client } from "@carillon/sdk";
import { eventually, startRedis } from "@carillon/testing";
import { expect, it } from "vitest";
import { statusOf } from "../../ops/test/in-words.js";

const library = existsSync("/usr/lib")
  ? readdirSync("/usr/lib")
      .map((folder) => join("/usr/lib", folder, "faketime/libfaketimeMT.so.1"))
      .find((file) => existsSync(file))
  : undefined;
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const PATIENCE = { timeoutMs: 60_000, intervalMs: 100 };

/** With jemalloc, the library and a server would wait for each other at the start. Some builds crash with it all the same. */
const PRELOAD = `${library} libc.so.6`;
const canStart = () =>
  spawnSync(process.env["CARILLON_REDIS_SERVER"] ?? "redis-server", ["--version"], {
    env: { ...process.env, LD_PRELOAD: PRELOAD },
    timeout: 60_000,
  }).status === 0;

it.skipIf(!library || !canStart())(
  "the clock of Redis goes back under a node: the status says so until it has caught up",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "carillon-clock-"));
    const file = join(folder, "offset");
    const setClock = (seconds: number) => {
      // Written in one step, so that it is never read half-written.
      writeFileSync(`${file}.new`, `${seconds < 0 ? "-" : "+"}${Math.abs(seconds)}\n`);
      renameSync(`${file}.new`, file);
    };
    setClock(0);
    const redis = await startRedis({
      env: {
        LD_PRELOAD: PRELOAD,
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
        FAKETIME_TIMESTAMP_FILE: file,
        FAKETIME_CACHE_DURATION: "1",
      },
    });
    const options = {
      connection: redis.url,
      logger: SILENT,
      unsafeRedis: "warn",
      heartbeatEvery: 200,
    } as const;
    const node = new Scheduler(options);
    const client = new Client({ connection: redis.url });
    const codes = async () => (await statusOf(client)).reasons.map(({ code }) => code);
    try {
      await node.start();
      await client.put({ id: "t", type: "t", queue: "q", schedule: { every: "1d" } });
      expect(await codes()).toEqual([]);
      const before = Date.now();
      setClock(-600);
      await eventually(async () => expect(await codes()).toEqual(["CLOCK_WENT_BACK"]), PATIENCE);
      const [reason] = (await statusOf(client)).reasons;
      expect(reason?.until).toBeGreaterThanOrEqual(before - 1_000);
      setClock(0);
      await eventually(async () => expect(await codes()).toEqual([]), PATIENCE);
    } finally {
      await node.stop();
      await client.close();
      await redis.stop();
      await rm(folder, { recursive: true });
    }
  },
);
