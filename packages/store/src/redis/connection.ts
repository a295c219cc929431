import type { ConnectionOptions as TlsOptions } from "node:tls";
import { CarillonError } from "@carillon/core";
import {
  type RedisOptions as AllRedisOptions,
  Cluster,
  type ClusterNode,
  type ClusterOptions,
  Redis,
} from "ioredis";
import { withoutPassword } from "./redis-error.js";
import { parseRedisUrl, type RedisPlace } from "./redis-url.js";
import { followFailovers, sentinelOptions } from "./sentinel.js";

export { failsForAll, isUnknown, redisError, withoutPassword } from "./redis-error.js";

export type RedisClient = Redis | Cluster;

/** An ioredis client, a `Redis` or a `Cluster`, of any copy of ioredis: yours need not be the one that Carillon uses. */
export interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  readonly options: object;
}

/** ioredis options without `replyMapping`, which would change the shape of replies. */
type RedisOptions = Omit<AllRedisOptions, "replyMapping">;

/**
 * Address of Redis.
 *
 * - A URL: `redis://[user:password@]host:port[/db]`; several, separated by commas, for the nodes of a cluster;
 *   `redis+sentinel://[user:password@]host:port,host:port/name[/db]` for the master that Sentinels know by this name, with
 *   `?sentinelUsername=` and `?sentinelPassword=` for themselves. `rediss` and `rediss+sentinel` for TLS.
 * - A URL with more: `topology: "cluster"` when only one node of a cluster is named; `tls`, the certificates as
 *   Node takes them (`ca`, `cert`, `key`, `servername`), for all that the URL names; further options of ioredis.
 * - Your ioredis client, `Redis` or `Cluster`, of any copy of ioredis. Carillon opens its own connections with the options of this
 *   client and its own settings; it never uses or closes the client itself.
 */
export type ConnectionSpec =
  | string
  | { url: string; topology?: "single" | "cluster" | "sentinel"; tls?: TlsOptions; options?: RedisOptions }
  | IoredisClient;

/** Wait before the next attempt to connect, in ms. */
export const reconnectAfter = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000);

/** For nodes and clients: a lost reply means UNKNOWN, and only we may decide to send again. */
const SAFE: RedisOptions = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  // Ends a connection on which nothing arrives any more: a new one may reach a live Redis.
  socketTimeout: 5_000,
  retryStrategy: reconnectAfter,
  disableClientInfo: true, // one command less for the ACL
};

/** For BullMQ's workers: they wait for Redis as long as it takes. */
const PATIENT: RedisOptions = {
  maxRetriesPerRequest: null,
  // More than the ten seconds for which BullMQ's longest blocking command waits.
  socketTimeout: 15_000,
  retryStrategy: reconnectAfter,
  disableClientInfo: true,
};

/** For a subscriber: `Subscription` resubscribes. ioredis would too, and would end the process if it got no reply. */
const SUBSCRIBER: RedisOptions = { ...SAFE, autoResubscribe: false };

/** For a store's own connection: opened with its first call, so that a client which is not used keeps no process alive. */
const LAZY: RedisOptions = { ...SAFE, lazyConnect: true };

/** After leaving a server because it is a replica, further refusals of that kind are ignored for this many ms. */
const LEAVE_AGAIN = 1_000;
const left = new WeakMap<object, number>();

/**
 * A master that became a replica: reconnect (the address may lead to the new master), never resend. Reconnects once for
 * all commands that were refused together; ioredis would do it, and set a timer, for each.
 */
function leaveReplica(this: unknown, { message }: Error): 1 | false {
  // Redis 6 puts the word in the middle of the text if a script causes it.
  if (!/\bREADONLY\b/.test(message)) return false;
  // A connection's own options: BullMQ duplicates connections, and each must leave by itself.
  const connection = this as object;
  const now = performance.now();
  if (now - (left.get(connection) ?? Number.NEGATIVE_INFINITY) < LEAVE_AGAIN) return false;
  left.set(connection, now);
  return 1;
}

const PROFILES = { safe: SAFE, lazy: LAZY, patient: PATIENT, subscriber: SUBSCRIBER };
export type ConnectionProfile = keyof typeof PROFILES;

/**
 * A new connection with the settings of the profile. All connect at once, but `lazy`, which waits for `connect()`. Never
 * throws for a Redis that is down.
 *
 * @throws `INVALID_OPTION` for an invalid URL, or one that contradicts other options; for a `keyPrefix`
 */
export function connect(spec: ConnectionSpec, profile: ConnectionProfile): RedisClient {
  assertNoPrefix(spec);
  const wanted = { ...PROFILES[profile], stringNumbers: false, reconnectOnError: leaveReplica };
  const client = open(spec, withoutUndefined(wanted));
  client.on("error", withoutPassword);
  if (client instanceof Redis) client.on("error", (error: unknown) => leaveOtherDatabase(client, error));
  return client;
}

/** @throws `INVALID_OPTION` if neither is given */
export function assertConnection(options: { connection?: unknown; store?: unknown }): void {
  if ((options.connection ?? options.store ?? undefined) !== undefined) return;
  throw new CarillonError("INVALID_OPTION", "missing.", {
    field: "connection",
    remedy: "Give a Redis URL, for example redis://localhost:6379.",
  });
}

/** ioredis would put it before the keys that a command names, and not before those that a script makes of them. */
function assertNoPrefix(spec: ConnectionSpec): void {
  const options = isObject(spec) ? spec.options : undefined;
  if (!isObject(options) || !("keyPrefix" in options) || !options.keyPrefix) return;
  throw new CarillonError("INVALID_OPTION", "keyPrefix is not supported.", {
    field: "connection",
    remedy: "Give one without; the namespace keeps Carillon's keys apart from others.",
  });
}

/** If the database cannot be selected, ioredis continues with database 0, and so with foreign tasks. */
function leaveOtherDatabase(client: Redis, error: unknown): void {
  const { command } = (error ?? {}) as { command?: { name: string } };
  if (command?.name === "select") client.disconnect(true);
}

function open(spec: ConnectionSpec, wanted: RedisOptions): RedisClient {
  if (isClient(spec)) return likeYours(spec, wanted);
  const given = typeof spec === "string" ? { url: spec } : spec;
  const place = readConnection(given);
  const options = {
    ...login(place),
    ...tlsOptions(place, given.tls),
    ...given.options,
    ...wanted,
    lazyConnect: wanted.lazyConnect ?? false,
  };
  if (place.topology === "sentinel") return throughSentinels(place, options);
  if (place.topology === "cluster") {
    // A certificate is checked against the name in the URL, not against the address that it leads to.
    const names: ClusterOptions = options.tls ? { dnsLookup: (name, done) => done(null, name) } : {};
    const { lazyConnect: _, ...redisOptions } = options;
    return new Cluster(place.hosts, { ...clusterOptions(wanted), ...names, redisOptions });
  }
  return new Redis({ ...place.hosts[0], ...options });
}

/** Checks a spec that is not a client. @throws `INVALID_OPTION` */
export function readConnection(
  { url, topology, tls }: Exclude<ConnectionSpec, string | IoredisClient>,
  field = "connection",
): RedisPlace {
  const place = parseRedisUrl(url, field);
  const refuse = (what: string, remedy: string) =>
    new CarillonError("INVALID_OPTION", what, { field, remedy });
  const said = place.topology;
  const chosen = topology ?? said;
  // One node is enough to find a cluster.
  if (chosen !== said && !(chosen === "cluster" && said === "single")) {
    throw refuse(
      `the URL means topology ${said}, but topology is ${chosen}.`,
      "Leave out the topology; it is needed only for a cluster of which the URL names one node.",
    );
  }
  if (chosen === "cluster" && place.db) {
    throw refuse(
      "a cluster has no numbered databases.",
      "A Redis Cluster has only database 0: leave it out.",
    );
  }
  if (tls && !place.tls) {
    throw refuse(
      "certificates are given, but the URL does not ask for TLS.",
      "Use rediss:// or rediss+sentinel://.",
    );
  }
  return { ...place, topology: chosen };
}

/** Tells a client by its members: `instanceof` knows only the classes of our own copy of ioredis. */
function isClient(spec: ConnectionSpec): spec is IoredisClient {
  return isObject(spec) && "isCluster" in spec && "status" in spec && isObject(spec.options);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** The options that the client's own `duplicate` would pass on, for our copy of ioredis. */
function likeYours(yours: IoredisClient, wanted: RedisOptions): RedisClient {
  if (yours.isCluster) {
    const { startupNodes, options } = yours as unknown as {
      startupNodes: ClusterNode[];
      options: ClusterOptions;
    };
    const { replyMapping: _, ...own } = options.redisOptions ?? {};
    return new Cluster([...startupNodes], {
      ...options,
      ...clusterOptions(wanted),
      redisOptions: { ...own, ...wanted },
    });
  }
  const options = {
    ...(yours.options as RedisOptions),
    ...wanted,
    replyMapping: "legacy",
    lazyConnect: wanted.lazyConnect ?? false,
  } as const;
  if (!options.sentinels) return new Redis(options);
  return followFailovers(new Redis({ ...options, ...sentinelOptions(reconnectAfter) }));
}

function throughSentinels(place: RedisPlace, options: RedisOptions): Redis {
  const { hosts, name, sentinelUsername, sentinelPassword } = place;
  const sentinels = withoutUndefined({ sentinels: hosts, name, sentinelUsername, sentinelPassword });
  const tls = options.tls ? { enableTLSForSentinelMode: true, sentinelTLS: options.tls } : {};
  return followFailovers(new Redis({ ...options, ...sentinels, ...tls, ...sentinelOptions(reconnectAfter) }));
}

function clusterOptions(wanted: RedisOptions): ClusterOptions {
  return {
    enableOfflineQueue: wanted.enableOfflineQueue ?? true,
    clusterRetryStrategy: reconnectAfter,
    slotsRefreshTimeout: 2_000,
    scaleReads: "master",
    lazyConnect: wanted.lazyConnect ?? false,
  };
}

function login({ db, username, password }: RedisPlace): RedisOptions {
  return withoutUndefined({ db, username, password });
}

function tlsOptions(place: RedisPlace, tls: TlsOptions | undefined): RedisOptions {
  return place.tls ? { tls: { ...tls } } : {};
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}
