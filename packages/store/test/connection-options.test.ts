import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis-5";
import { afterEach, describe, expect, it } from "vitest";
import { type ConnectionSpec, connect, type RedisClient } from "../src/redis/connection.js";
import { CLUSTER_OPTIONS, REDIS_OPTIONS } from "../src/redis/options.js";

const open: RedisClient[] = [];
afterEach(() => {
  for (const client of open.splice(0)) client.disconnect();
});

/** Names of all options in the types of a copy of ioredis. */
function optionsIn(copy: string, files: readonly string[]): string[] {
  const text = files
    .map((file) => fileURLToPath(new URL(`./${file}.d.ts`, import.meta.resolve(copy))))
    .map((file) => readFileSync(file, "utf8"))
    .map((types) => types.replace(/\/\*[\s\S]*?\*\//g, ""));
  const bodies = text.flatMap((types) =>
    [...types.matchAll(/(?:interface \w*Options\b[^{]*|Options = [^{;]*)\{\n([\s\S]*?)\n\}/g)].map(
      ([, body]) => body!,
    ),
  );
  const members = bodies.flatMap((body) => [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name]) => name!));
  // `TcpOptions` and `IpcOptions` pick these from Node's.
  const picked = files.includes("connectors/StandaloneConnector") ? ["host", "port", "family", "path"] : [];
  return [...new Set([...members, ...picked])].sort();
}

const OF_REDIS = [
  "redis/RedisOptions",
  "utils/Commander",
  "connectors/SentinelConnector/index",
  "connectors/StandaloneConnector",
];
const OF_CLUSTER = ["cluster/ClusterOptions", "utils/Commander"];

describe.each(["ioredis", "ioredis-5"])("each option of %s has a rule", (copy) => {
  it("of one server", () => {
    const names = optionsIn(copy, OF_REDIS);
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !(name in REDIS_OPTIONS))).toEqual([]);
  });

  it("of a cluster", () => {
    const names = optionsIn(copy, OF_CLUSTER).filter((name) => name !== "redisOptions");
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter((name) => !(name in CLUSTER_OPTIONS))).toEqual([]);
  });
});

/** A value that Carillon itself would never use, for the options that change how a connection behaves. */
const HOSTILE: Record<string, unknown> = {
  commandTimeout: 7,
  blockingTimeout: 7,
  blockingTimeoutGrace: 7,
  socketTimeout: 7,
  connectTimeout: 7,
  disconnectTimeout: 7,
  maxRetriesPerRequest: 7,
  maxLoadingRetryTime: 7_000_000,
  retryStrategy: () => null,
  reconnectOnError: () => 2,
  autoResendUnfulfilledCommands: "yours",
  autoResubscribe: "yours",
  enableOfflineQueue: "yours",
  enableReadyCheck: "",
  enableAutoPipelining: "yours",
  autoPipeliningIgnoredCommands: ["evalsha"],
  disableClientInfo: "",
  lazyConnect: "yours",
  stringNumbers: "yours",
  replyMapping: "yours",
  readOnly: "yours",
  monitor: "yours",
  offlineQueue: "yours",
  commandQueue: "yours",
  scripts: {},
  himportFieldsets: [],
  role: "slave",
  preferredSlaves: [{ ip: "a", port: "1" }],
  sentinelRetryStrategy: () => null,
  sentinelReconnectStrategy: () => null,
  sentinelCommandTimeout: 7_000,
  sentinelMaxConnections: 7,
  updateSentinels: "yours",
  failoverDetector: "",
  clusterRetryStrategy: () => null,
  clusterNodeRetryStrategy: () => 7,
  scaleReads: "slave",
  maxRedirections: 7,
  retryDelayOnFailover: 7_000,
  retryDelayOnClusterDown: 7_000,
  retryDelayOnTryAgain: 7_000,
  retryDelayOnMoved: 7_000,
  slotsRefreshTimeout: 7,
  shardedSubscribers: "yours",
};

const overridden = (table: object) =>
  Object.entries(table)
    .filter(([, rule]) => typeof rule === "object")
    .map(([name]) => name);
const hostile = (table: object) =>
  Object.fromEntries(overridden(table).map((name) => [name, HOSTILE[name]])) as Record<string, never>;

it("a hostile value is known for each option that Carillon overrides", () => {
  const names = [...overridden(REDIS_OPTIONS), ...overridden(CLUSTER_OPTIONS)];
  expect(names.filter((name) => HOSTILE[name] === undefined)).toEqual([]);
});

// A client that never connects: only its options are of interest. Its constructor would act on these three.
const inert = {
  scripts: undefined,
  himportFieldsets: undefined,
  monitor: undefined,
  lazyConnect: true,
} as never;
const ofServer = { ...hostile(REDIS_OPTIONS), ...(inert as object), replyMapping: "legacy" } as never;
const ofCluster = {
  ...hostile(CLUSTER_OPTIONS),
  ...(inert as object),
  scaleReads: "slave",
  redisOptions: hostile(REDIS_OPTIONS),
} as never;
const sentinels = { sentinels: [{ host: "127.0.0.1", port: 1 }], name: "main" };
const node = { host: "127.0.0.1", port: 1 };

const SPECS: [string, () => ConnectionSpec][] = [
  ["a URL with options", () => ({ url: "redis://127.0.0.1:1", options: hostile(REDIS_OPTIONS) })],
  [
    "a cluster's URL with options",
    () => ({ url: "redis://127.0.0.1:1,redis://127.0.0.1:2", options: hostile(REDIS_OPTIONS) }),
  ],
  [
    "Sentinels' URL with options",
    () => ({ url: "redis+sentinel://127.0.0.1:1/main", options: hostile(REDIS_OPTIONS) }),
  ],
  ["a client", () => new Redis(ofServer)],
  ["a client of ioredis 5", () => new Redis5(ofServer)],
  ["a client through Sentinels", () => new Redis({ ...(ofServer as object), ...sentinels })],
  ["a cluster's client", () => new Cluster([node], ofCluster)],
  ["a cluster's client of ioredis 5", () => new Cluster5([node], ofCluster)],
];

describe.each(SPECS)("%s", (_, spec) => {
  it.each(["safe", "lazy", "patient"] as const)("cannot end, delay or reshape a command: %s", (profile) => {
    const client = connect(spec(), profile);
    open.push(client);
    client.on("error", () => {});
    const { options } = client;
    const parts: [Record<string, unknown>, object][] =
      client instanceof Cluster
        ? [
            [options as never, CLUSTER_OPTIONS],
            [client.options.redisOptions as never, REDIS_OPTIONS],
          ]
        : [[options as never, REDIS_OPTIONS]];
    for (const [actual, table] of parts) {
      const kept = overridden(table).filter((name) => {
        const value = actual[name];
        return value !== undefined && value === HOSTILE[name];
      });
      expect(kept).toEqual([]);
    }
    // The longest that BullMQ blocks is ten seconds.
    const ofNodes = parts.at(-1)![0];
    if (profile === "patient") {
      expect(ofNodes["commandTimeout"]).toBeUndefined();
      expect(ofNodes["socketTimeout"]).toBeGreaterThan(10_000);
    } else expect(ofNodes).toMatchObject({ commandTimeout: 5_000, autoResendUnfulfilledCommands: false });
  });
});
