import type { ConnectionSpec, NodeInfo, Worked, WorkerInfo } from "@carillon/store";
import { type RedisServer, startCluster, startRedis } from "@carillon/testing";
import { Redis } from "ioredis";
import { beforeAll, describe } from "vitest";

/** A logger for nodes and workers that discards everything. */
export const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A worker that takes turns at a queue. */
export const LANE = { worker: "me", pid: 1, host: "h", lock: 30_000 };

/** A schedule due each hour, for the first time in half an hour: not within a test, whenever it runs. */
export const hourly = () => ({ every: "1h", origin: new Date(Date.now() - 1_800_000).toISOString() });

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

/** The answer of a trigger that enqueued a run. */
export function enqueued<Answer extends { outcome: string }>(answer: Answer) {
  if (answer.outcome !== "enqueued") throw new Error(`It was ${answer.outcome}.`);
  return answer as Extract<Answer, { outcome: "enqueued" }>;
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

function refuse(): never {
  throw new Error("Other files share this Redis server. Start one with ownRedis().");
}

const ENGINES = {
  single: async () => {
    // A node requires a Redis that persists its data.
    const server = await startRedis({ appendonly: true });
    return Object.assign(server, { stop: refuse, kill: refuse, restart: refuse, pause: refuse });
  },
  cluster: () => startCluster({ masters: 3 }),
};
type Engines = typeof ENGINES;

/** Started by the first test file of this process that needs them, used by all, and stopped when the process ends. */
const shared: { [Name in keyof Engines]?: ReturnType<Engines[Name]> } = {};

/** Empties the server, or the cluster, that the test files of this process share. Tests that configure, freeze or stop one start their own. */
export async function emptied<Name extends keyof Engines>(
  name: Name,
): Promise<Awaited<ReturnType<Engines[Name]>>> {
  shared[name] ??= ENGINES[name]() as (typeof shared)[Name];
  const engine = await (shared[name] as ReturnType<Engines[Name]>);
  for (const { url } of "nodes" in engine ? engine.nodes : [engine]) {
    const redis = new Redis(url);
    await redis.flushall();
    redis.disconnect();
  }
  return engine as Awaited<ReturnType<Engines[Name]>>;
}

/** The cluster is the stricter one, and most other tests use a single server: `npm run test:engines` runs these on it too. */
const WANTED = (process.env["CARILLON_ENGINES"] ?? "cluster").split(",") as (keyof Engines)[];

/** Runs a suite on a shared cluster of three masters, or on what `CARILLON_ENGINES` names: `single`, `cluster`. */
export function onEveryEngine(name: string, suite: (connection: () => ConnectionSpec) => void): void {
  for (const engine of WANTED) {
    describe(`${name} (${engine})`, () => {
      let url: string;
      beforeAll(async () => {
        url = (await emptied(engine)).url;
      });
      suite(() => url);
    });
  }
}

/** The Redis server that the test files of this process share, empty when the file or group of tests begins. */
export function sharedRedis(): RedisServer {
  return redisOf(() => emptied("single"));
}

/** A Redis server of a file or group of tests that configure, freeze or stop it. */
export function ownRedis(options?: Parameters<typeof startRedis>[0]): RedisServer {
  return redisOf(
    () => startRedis(options),
    (server) => server.stop(),
  );
}

function redisOf(
  open: () => Promise<RedisServer>,
  close?: (server: RedisServer) => Promise<void>,
): RedisServer {
  let server: RedisServer;
  beforeAll(async () => {
    server = await open();
    return () => close?.(server);
  });
  return standIn(() => server);
}

/** An object that does what the one does that there is by then. */
export function standIn<One extends object>(present: () => One): One {
  return new Proxy({} as One, {
    get(_, name) {
      const value = Reflect.get(present(), name);
      return typeof value === "function" ? value.bind(present()) : value;
    },
    // For those who copy it.
    ownKeys: () => Reflect.ownKeys(present()),
    getOwnPropertyDescriptor(_, name) {
      return { ...Reflect.getOwnPropertyDescriptor(present(), name), configurable: true };
    },
  });
}
