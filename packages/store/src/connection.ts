import { CarillonError, isCarillonError } from "@carillon/core";
import { type RedisOptions as AllRedisOptions, Cluster, type ClusterOptions, Redis } from "ioredis";

export type RedisClient = Redis | Cluster;

/** ioredis options; the shape of replies is not for the caller to choose. */
export type RedisOptions = Omit<AllRedisOptions, "replyMapping">;

/**
 * Where Redis is: a URL (`redis://`, `rediss://` for TLS), several URLs for the nodes of a cluster, or an ioredis
 * client of yours, of which we only take the options: Carillon needs its own settings and never touches yours.
 */
export type ConnectionSpec =
  | string
  | { url: string; topology?: "single" | "cluster"; options?: RedisOptions }
  | RedisClient;

/** How long to wait before the next attempt to connect, in ms. */
const reconnectAfter = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000);

/** For nodes and clients: a lost reply means UNKNOWN, and only we may decide to send again. */
const SAFE: RedisOptions = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  retryStrategy: reconnectAfter,
  // A master that became a replica: reconnect (the address may lead to the new master), never resend.
  reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 1 : false),
};

/** For BullMQ's workers: they wait for Redis as long as it takes. */
const PATIENT: RedisOptions = {
  maxRetriesPerRequest: null,
  retryStrategy: reconnectAfter,
};

/** For a subscriber: must come back by itself and subscribe again. */
const SUBSCRIBER: RedisOptions = { ...SAFE, autoResubscribe: true };

const PROFILES = { safe: SAFE, patient: PATIENT, subscriber: SUBSCRIBER };
export type ConnectionProfile = keyof typeof PROFILES;

/** A fresh connection with the settings of the profile. Opens lazily or not at all: never throws for a Redis that is down. */
export function connect(spec: ConnectionSpec, profile: ConnectionProfile): RedisClient {
  const wanted = withoutUndefined(PROFILES[profile]);
  if (spec instanceof Cluster) {
    const { replyMapping: _, ...own } = spec.options.redisOptions ?? {};
    return spec.duplicate(undefined, { ...clusterOptions(wanted), redisOptions: { ...own, ...wanted } });
  }
  if (spec instanceof Redis) return spec.duplicate({ ...wanted, replyMapping: "legacy" });
  const { url, topology, options } =
    typeof spec === "string" ? { url: spec } : { options: undefined, ...spec };
  const urls = parseRedisUrls(url);
  const first = urls[0] as RedisOptions;
  const redisOptions = { ...credentials(first), ...options, ...wanted };
  if (topology === "cluster" || urls.length > 1) {
    const nodes = urls.map(({ host, port }) => ({ host: host as string, port: port as number }));
    return new Cluster(nodes, { ...clusterOptions(wanted), redisOptions });
  }
  return new Redis({ ...first, ...redisOptions });
}

function clusterOptions(wanted: RedisOptions): ClusterOptions {
  return {
    enableOfflineQueue: wanted.enableOfflineQueue ?? true,
    clusterRetryStrategy: reconnectAfter,
    slotsRefreshTimeout: 2_000,
    scaleReads: "master",
  };
}

/** Reads one URL or several. @throws `INVALID_OPTION`; the message never holds the URL, which may hold a password */
export function parseRedisUrls(text: string, field = "connection"): RedisOptions[] {
  try {
    return text.split(",").map((part) => parseRedisUrl(part.trim()));
  } catch {
    throw new CarillonError("INVALID_OPTION", "not a Redis URL.", {
      field,
      remedy:
        "Use redis://[user:password@]host:port[/db], rediss:// for TLS; separate cluster nodes by commas.",
    });
  }
}

/** @throws anything, where it is none */
function parseRedisUrl(text: string): RedisOptions {
  const url = new URL(text);
  const db = url.pathname.length > 1 ? Number(url.pathname.slice(1)) : 0;
  if (!["redis:", "rediss:"].includes(url.protocol) || !url.hostname || !Number.isInteger(db) || db < 0) {
    throw new TypeError("not a Redis URL");
  }
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port ? Number(url.port) : 6379,
    ...(db ? { db } : {}),
    ...(url.username ? { username: decodeURIComponent(url.username) } : {}),
    ...(url.password ? { password: decodeURIComponent(url.password) } : {}),
    ...(url.protocol === "rediss:" ? { tls: {} } : {}),
  };
}

function credentials({ username, password, tls }: RedisOptions): RedisOptions {
  return withoutUndefined({ username, password, tls });
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}

/** What Redis or the connection said, as one of our codes. */
export function redisError(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  const text = error instanceof Error ? error.message : String(error);
  const nested = (error as { lastNodeError?: unknown } | undefined)?.lastNodeError;
  if (nested && nested !== error) return redisError(nested);
  if (/^(ERR )?(NOAUTH|WRONGPASS|NOPERM)|invalid (username-)?password|AUTH failed|NOAUTH/i.test(text)) {
    return new CarillonError("REDIS_AUTH", `Redis refused us: ${text.slice(0, 200).replace(/\.$/, "")}.`, {
      remedy: "Give the right user and password in the Redis URL, and the ACL that docs/deployment.md lists.",
      cause: error,
    });
  }
  if (/READONLY/.test(text)) {
    return new CarillonError("REDIS_READ_ONLY", "this Redis is a read-only replica.", {
      remedy: "Point the URL at the master.",
      cause: error,
    });
  }
  if (/^OOM|OOM command not allowed/.test(text)) {
    return new CarillonError("REDIS_OUT_OF_MEMORY", "Redis is out of memory.", {
      remedy: "Raise maxmemory or remove data; nothing was written.",
      cause: error,
    });
  }
  if (UNAVAILABLE.test(text)) {
    return new CarillonError("REDIS_UNAVAILABLE", `Redis cannot be reached: ${text.replace(/\.$/, "")}.`, {
      remedy: "Check that it runs and that the URL is right.",
      cause: error,
    });
  }
  return new CarillonError("REDIS_ERROR", text, { cause: error });
}

const UNAVAILABLE =
  /ECONN|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EPIPE|EAI_AGAIN|Connection is closed|Stream isn't writeable|Command timed out|max retries|None of startup nodes|Failed to refresh slots|CLUSTERDOWN|LOADING|MASTERDOWN|TRYAGAIN|Cluster isn't ready|connect/i;

/** Nobody can tell whether the command was carried out: repeat it, or ask. */
export function isUnknown(error: unknown): boolean {
  return isCarillonError(error, "REDIS_UNAVAILABLE");
}
