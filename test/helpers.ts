import type { Worked } from "@carillon/store";
import { type RedisServer, startRedis, type TestKit, type TestKitOptions, testKit } from "@carillon/testing";
import type { Redis } from "ioredis";
import { beforeAll, beforeEach } from "vitest";

/** A logger for nodes and workers that discards everything. */
export const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A worker that takes turns at a queue. */
export const LANE = { worker: "me", pid: 1, host: "h", lock: 30_000 };

/** Data that a worker gives about itself when it starts an attempt of a run. */
export function attempt(more: Partial<Worked> = {}): Worked {
  return { worker: "w", pid: 1, host: "h", attempt: 1, made: 0, ...more };
}

/** A promise, and the function that resolves it. */
export function gate<T = void>() {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** The keys that do not expire, sorted: Redis deletes the marks and numbers of a task or a lane a day after their last use. */
export async function lastingKeys(redis: Redis, pattern = "*"): Promise<string[]> {
  const keys = await redis.keys(pattern);
  const expiry = await Promise.all(keys.map((key) => redis.pttl(key)));
  return keys.filter((_, i) => expiry[i] === -1).sort();
}

/** Gives each test of a file or group a kit of its own; all use one Redis server. */
export function eachKit(
  options: Omit<TestKitOptions, "redis">,
  use: (kit: TestKit, redis: RedisServer) => void,
): void {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    return () => redis.stop();
  });
  beforeEach(async () => {
    const kit = await testKit({ ...options, redis });
    use(kit, redis);
    return () => kit.close();
  });
}
