import type { ConnectionOptions as TlsOptions } from "node:tls";
import type { CarillonError } from "@carillon/core";
import { assertOptions, invalid } from "@carillon/core/internal";
import {
  type RedisOptions as AllRedisOptions,
  Cluster,
  type ClusterNode,
  type ClusterOptions,
  Redis,
} from "ioredis";
import {
  assertBesideUrl,
  CLUSTER_OPTIONS,
  CONNECTION_NAME,
  type ConnectionProfile,
  REDIS_OPTIONS,
  settled,
} from "./options.js";
import { NO_DATABASES, withoutPassword } from "./redis-error.js";
import { parseRedisUrl, type RedisPlace } from "./redis-url.js";
import { followFailovers } from "./sentinel.js";

export { type ConnectionProfile, reconnectAfter } from "./options.js";
export { failsForAll, isUnknown, redisError, withoutPassword } from "./redis-error.js";

export type RedisClient = Redis | Cluster;

export function mastersOf(client: RedisClient): Redis[] {
  return "nodes" in client ? client.nodes("master") : [client];
}

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
 * - A URL: `redis://[user:password@]host:port[/db]`, of one server, or any address of a cluster; several, separated by commas,
 *   for further nodes of the cluster;
 *   `unix://[user:password@]/path/of/the/socket[?db=1]`;
 *   `redis+sentinel://[user:password@]host:port,host:port/name[/db]` for the master that Sentinels know by this name, with
 *   `?sentinelUsername=` and `?sentinelPassword=` for themselves. `rediss` and `rediss+sentinel` for TLS.
 * - A URL with more: `tls`, the certificates as Node takes them (`ca`, `cert`, `key`, `servername`), for all that the URL
 *   names; further options of ioredis.
 * - Your ioredis client, `Redis` or `Cluster`, of any copy of ioredis. Carillon opens its own connections with the options of this
 *   client and its own settings; it never uses or closes the client itself.
 * - A function that returns one of these. It is called when a connection is opened: with the first call.
 */
export type ConnectionSpec = Endpoint | (() => Endpoint | undefined);

type Endpoint = string | EndpointByUrl | IoredisClient;
interface EndpointByUrl {
  url: string;
  tls?: TlsOptions;
  options?: RedisOptions;
}

/**
 * A new connection with the settings of the profile. All connect at once, but `lazy`, which waits for `connect()`. Never
 * throws for a Redis that is down.
 *
 * @param cluster whether the one server that the spec names is part of a cluster
 * @throws `INVALID_OPTION` for an invalid URL, or one that contradicts other options; for a `keyPrefix`
 */
export function connect(
  spec: ConnectionSpec | undefined,
  profile: ConnectionProfile,
  cluster = false,
): RedisClient {
  const place = typeof spec === "function" ? spec() : spec;
  if (place === undefined || place === null) throw missingConnection();
  const client = isClient(place) ? likeYours(place, profile, cluster) : byUrl(place, profile, cluster);
  client.on("error", withoutPassword);
  if (client instanceof Redis) client.on("error", (error: unknown) => leaveOtherDatabase(client, error));
  return client;
}

/** @throws `INVALID_OPTION` if neither is given */
export function assertConnection(options: { connection?: unknown; store?: unknown }): void {
  if ((options.connection ?? options.store ?? undefined) === undefined) throw missingConnection();
}

function missingConnection(): CarillonError {
  return invalid("connection", "missing.", "Give a Redis URL, for example redis://localhost:6379.");
}

/** If the database cannot be selected, ioredis continues with database 0, and so with foreign tasks. */
function leaveOtherDatabase(client: Redis, error: unknown): void {
  const { command } = (error ?? {}) as { command?: { name: string } };
  if (command?.name === "select") client.disconnect(true);
}

function byUrl(spec: string | EndpointByUrl, profile: ConnectionProfile, cluster: boolean): RedisClient {
  const given = typeof spec === "string" ? { url: spec } : spec;
  const options = given.options ?? {};
  const address =
    given.url === undefined ? { ...options, ...(given as { host?: unknown; port?: unknown }) } : {};
  if (address.host !== undefined || address.port !== undefined) {
    const url = `redis://${String(address.host ?? "localhost")}:${String(address.port ?? 6379)}`;
    throw invalid(
      "connection",
      "the address is missing from a URL.",
      `Give "${url}", or { url: "${url}", options }.`,
    );
  }
  assertOptions(given, ["url", "tls", "options"], "connection");
  assertBesideUrl(options);
  const {
    hosts,
    topology,
    tls: encrypt,
    name,
    sentinelUsername,
    sentinelPassword,
    ...login
  } = readConnection(given);
  const tls = encrypt ? { ...options.tls, ...given.tls } : options.tls;
  const all = { ...login, ...options, ...(tls ? { tls } : {}) };
  if (topology === "cluster") return openClusterAt(hosts, all, profile);
  if (topology === "single") return openOne({ ...hosts[0], ...all }, profile, cluster);
  const sentinels = { sentinels: hosts, name, sentinelUsername, sentinelPassword };
  const encrypted = tls ? { enableTLSForSentinelMode: true, sentinelTLS: tls } : {};
  return openServer({ ...all, ...sentinels, ...encrypted }, profile);
}

/** To one server, or to the cluster that it is part of. A socket leads to no other server. */
function openOne(given: AllRedisOptions, profile: ConnectionProfile, cluster: boolean): RedisClient {
  if (!cluster || !leadsToCluster(given)) return openServer(given, profile);
  const { host = "localhost", port = 6379 } = given;
  return openClusterAt([{ host, port }], given, profile);
}

/** Whether a connection with these options can lead to a cluster. */
export function leadsToCluster({ path, sentinels }: AllRedisOptions): boolean {
  return !path && !sentinels;
}

/** To one server, or to the master that Sentinels know. */
function openServer(given: object, profile: ConnectionProfile): Redis {
  const options: AllRedisOptions = settled(REDIS_OPTIONS, given, profile);
  const client = named(new Redis(options as RedisOptions));
  return options.sentinels ? followFailovers(client) : client;
}

function openClusterAt(
  hosts: readonly ClusterNode[],
  given: AllRedisOptions,
  profile: ConnectionProfile,
): Cluster {
  // A certificate is checked against the name in the URL, not against the address that it leads to.
  const names: ClusterOptions = given.tls ? { dnsLookup: (host, done) => done(null, host) } : {};
  return openCluster(hosts, { ...given, ...names }, given, profile);
}

function openCluster(
  hosts: readonly ClusterNode[],
  given: object,
  ofNodes: object,
  profile: ConnectionProfile,
): Cluster {
  const { lazyConnect: _, ...redisOptions } = settled(REDIS_OPTIONS, ofNodes, profile);
  const cluster = new Cluster([...hosts], { ...settled(CLUSTER_OPTIONS, given, profile), redisOptions });
  return cluster.on("+node", named);
}

/**
 * Names a connection once it is ready, for `CLIENT LIST` and `SLOWLOG`. The option `connectionName` would send the name first, and hide the
 * error with which Redis refuses a connection.
 */
function named(client: Redis): Redis {
  if (client.options.connectionName) return client;
  return client.on("ready", () => void client.call("CLIENT", "SETNAME", CONNECTION_NAME).catch(() => {}));
}

/** Checks a spec that is not a client. @throws `INVALID_OPTION` */
export function readConnection({ url, tls }: EndpointByUrl, field = "connection"): RedisPlace {
  const place = parseRedisUrl(url, field);
  if (place.topology === "cluster" && place.db) throw invalid(field, NO_DATABASES.what, NO_DATABASES.remedy);
  if (tls && !place.tls)
    throw invalid(
      field,
      "certificates are given, but the URL does not ask for TLS.",
      "Use rediss:// or rediss+sentinel://.",
    );
  return place;
}

/** Tells a client by its members: `instanceof` knows only the classes of our own copy of ioredis. */
function isClient(spec: Endpoint): spec is IoredisClient {
  return isObject(spec) && "isCluster" in spec && "status" in spec && isObject(spec.options);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** The options that the client's own `duplicate` would pass on, for our copy of ioredis. */
function likeYours(yours: IoredisClient, profile: ConnectionProfile, cluster: boolean): RedisClient {
  if (!yours.isCluster) return openOne(yours.options, profile, cluster);
  const { startupNodes, options } = yours as unknown as {
    startupNodes: ClusterNode[];
    options: ClusterOptions;
  };
  return openCluster(startupNodes, options, options.redisOptions ?? {}, profile);
}
