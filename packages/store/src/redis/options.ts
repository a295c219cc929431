import type { CarillonError } from "@carillon/core";
import { assertOptions, invalid } from "@carillon/core/internal";
import type { ClusterOptions, RedisOptions } from "ioredis";

/**
 * Use of a connection.
 *
 * - `safe`: nodes and clients. A lost reply means UNKNOWN, and only we may decide to send again.
 * - `lazy`: the same, but opened with the first call, so that a client which is not used keeps no process alive.
 * - `patient`: BullMQ's workers. They wait for Redis as long as it takes, and block for ten seconds.
 */
export type ConnectionProfile = "safe" | "lazy" | "patient";

/** Carillon's value of an option in each profile. Undefined: the default of ioredis. */
type Ours = Readonly<Record<ConnectionProfile, unknown>>;

/**
 * - `yours`: passed on.
 * - `address`: passed on from a client; refused alongside a URL, which says it.
 * - `refused`: an error.
 * - a value: takes the place of the given one.
 */
type Rule = "yours" | "address" | "refused" | Ours;

const each = (safe: unknown, patient: unknown): Ours => ({ safe, lazy: safe, patient });
const ours = (value: unknown): Ours => each(value, value);
const theDefault = ours(undefined);

/** Name of a connection in `CLIENT LIST` and `SLOWLOG`, unless yours has another one. */
export const CONNECTION_NAME = "carillon";

/** Wait before the next attempt to connect, in ms. */
export const reconnectAfter = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000);

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

/** Options that `Redis` and `Cluster` both have. */
const COMMON = {
  lazyConnect: { safe: false, lazy: true, patient: false },
  enableOfflineQueue: each(false, true),
  // A server that still loads its data is not ready.
  enableReadyCheck: ours(true),
  // Scripts are executed in the order of their calls.
  enableAutoPipelining: ours(false),
  autoPipeliningIgnoredCommands: theDefault,
  natMap: "yours",
  showFriendlyErrorStack: "yours",
  // ioredis would put it before the keys that a command names, and not before those that a script makes of them.
  keyPrefix: "refused",
  // Commands and fieldsets of the application: they could replace commands that Carillon uses.
  scripts: theDefault,
  himportFieldsets: theDefault,
} satisfies Partial<Record<keyof RedisOptions & keyof ClusterOptions, Rule>>;

/** Each option of a connection to one server. The compiler names those of a new ioredis that are missing. */
export const REDIS_OPTIONS = {
  ...COMMON,

  // Place and login.
  host: "address",
  port: "address",
  path: "address",
  sentinels: "address",
  name: "address",
  family: "yours",
  Connector: "yours",
  tls: "yours",
  username: "yours",
  password: "yours",
  db: "yours",
  sentinelUsername: "yours",
  sentinelPassword: "yours",
  sentinelTLS: "yours",
  enableTLSForSentinelMode: "yours",

  // Socket and identity.
  keepAlive: "yours",
  noDelay: "yours",
  connectionName: "yours",
  clientInfoTag: "yours",
  protocol: "yours",
  disableClientInfo: ours(true), // one command less for the ACL

  // Ends of connections and commands.
  commandTimeout: each(5_000, undefined),
  blockingTimeout: theDefault,
  blockingTimeoutGrace: theDefault,
  // Ends a connection on which nothing arrives any more: a new one may reach a live Redis. BullMQ blocks for ten seconds.
  socketTimeout: each(5_000, 15_000),
  connectTimeout: ours(5_000),
  maxRetriesPerRequest: each(0, null),
  maxLoadingRetryTime: theDefault,
  retryStrategy: ours(reconnectAfter),
  reconnectOnError: ours(leaveReplica),
  autoResendUnfulfilledCommands: each(false, true),
  // `Subscription` resubscribes. ioredis would too, and would end the process if it got no reply.
  autoResubscribe: ours(false),

  // Shape of replies.
  stringNumbers: ours(false),
  replyMapping: ours("legacy"),
  readOnly: ours(false),
  monitor: ours(false),
  offlineQueue: theDefault,
  commandQueue: theDefault,

  // Sentinels. Your client may read from replicas; decisions need the newest data.
  role: ours("master"),
  preferredSlaves: theDefault,
  // Must always return a number: otherwise the client gives up when no Sentinel answers.
  sentinelRetryStrategy: ours(reconnectAfter),
  sentinelReconnectStrategy: theDefault,
  // A frozen Sentinel must not delay the search: its connection is open, but it never answers.
  sentinelCommandTimeout: ours(2_000),
  // Uses only the given Sentinels. The addresses that Sentinels report of each other belong to their own
  // network, and their names may be in no certificate; each unreachable one costs seconds in a failover.
  updateSentinels: ours(false),
  sentinelMaxConnections: theDefault,
  // See `followFailovers`, which does it.
  failoverDetector: ours(false),
  // Wait of a disconnect for a frozen master, in ms.
  disconnectTimeout: ours(500),
} satisfies Record<keyof RedisOptions, Rule>;

/** Each option of a cluster; those of its connections, `redisOptions`, are above. */
export const CLUSTER_OPTIONS = {
  ...COMMON,
  useSRVRecords: "yours",
  resolveSrv: "yours",
  dnsLookup: "yours",
  slotsRefreshInterval: "yours",
  clusterRetryStrategy: ours(reconnectAfter),
  clusterNodeRetryStrategy: theDefault,
  scaleReads: ours("master"),
  maxRedirections: theDefault,
  retryDelayOnFailover: theDefault,
  retryDelayOnClusterDown: theDefault,
  retryDelayOnTryAgain: theDefault,
  retryDelayOnMoved: theDefault,
  slotsRefreshTimeout: ours(2_000),
  shardedSubscribers: theDefault,
} satisfies Record<Exclude<keyof ClusterOptions, "redisOptions">, Rule>;

/**
 * Options for a connection: yours of the given ones, and Carillon's own. An option that the table lacks, as of an ioredis that
 * is newer than this package, is left out: it could end or delay commands.
 *
 * @throws `INVALID_OPTION`
 */
export function settled(
  table: Readonly<Record<string, Rule>>,
  given: object,
  profile: ConnectionProfile,
): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries(table)) {
    const value = (given as Record<string, unknown>)[name];
    if (rule === "refused" && value) throw notSupported(name);
    const settledValue = typeof rule === "object" ? rule[profile] : value;
    if (settledValue !== undefined) options[name] = settledValue;
  }
  return options;
}

/** Checks the options alongside a URL. @throws `INVALID_OPTION` */
export function assertBesideUrl(given: object): void {
  const rules = Object.entries<Rule>(REDIS_OPTIONS);
  const said = rules.find(([name, rule]) => rule === "address" && name in given);
  if (said) throw invalid(`connection.options.${said[0]}`, "the URL says it.", "Leave it out.");
  const known = rules.map(([name]) => name) as never[];
  assertOptions(given, known, "connection.options");
}

function notSupported(name: string): CarillonError {
  return invalid(
    "connection",
    `${name} is not supported.`,
    "Give one without; the namespace keeps Carillon's keys apart from others.",
  );
}
