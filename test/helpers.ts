import type { NodeInfo, Worked, WorkerInfo } from "@carillon/store";
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

/** A node's entry in the registry; its last heartbeat was at the epoch. */
export function nodeInfo(id: string, more: Partial<NodeInfo> = {}): NodeInfo {
  const process = { id, host: "h", pid: 1, version: "1", started: 1, beat: 0, every: 10_000, ready: true };
  return { ...process, tzdata: "2026a", bullmq: "6.0.0", clockOffset: 0, ...more };
}

/** An idle worker's entry in the registry; its last heartbeat was at the epoch. */
export function workerInfo(id: string, more: Partial<WorkerInfo> = {}): WorkerInfo {
  const process = { id, host: "h", pid: 1, started: 1, beat: 0, every: 10_000, stopping: false };
  const versions = { carillon: "1", bullmq: "6.0.0", node: "20" };
  return { ...process, versions, queues: [], types: [], running: 0, runs: [], ...more };
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

/** A Redis server of a file or group of tests: it is started before the first of them, and stopped after the last. */
export function ownRedis(options?: Parameters<typeof startRedis>[0]): RedisServer {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis(options);
    return () => server.stop();
  });
  return new Proxy({} as RedisServer, {
    get(_, name) {
      const value = Reflect.get(server, name);
      return typeof value === "function" ? value.bind(server) : value;
    },
    // For those who copy it.
    ownKeys: () => Reflect.ownKeys(server),
    getOwnPropertyDescriptor(_, name) {
      return { ...Reflect.getOwnPropertyDescriptor(server, name), configurable: true };
    },
  });
}

/** Gives each test of a file or group a kit of its own; all use one Redis server. */
export function eachKit(
  options: Omit<TestKitOptions, "redis">,
  use: (kit: TestKit, redis: RedisServer) => void,
): void {
  const redis = ownRedis();
  beforeEach(async () => {
    const kit = await testKit({ ...options, redis });
    use(kit, redis);
    return () => kit.close();
  });
}
