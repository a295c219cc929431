import { CarillonError, type ErrorCode, isCarillonError } from "@carillon/core";

/**
 * Removes the arguments from an error about signing in: ioredis keeps the command in it, so a printed error would
 * contain the password.
 */
export function withoutPassword(error: unknown): void {
  const { command, lastNodeError } = (error ?? {}) as {
    command?: { name: string; args: unknown[] };
    lastNodeError?: unknown;
  };
  if (command && /^(hello|auth)$/i.test(command.name)) command.args = [];
  if (lastNodeError && lastNodeError !== error) withoutPassword(lastNodeError);
}

/**
 * Errors of the connection, of a command, and of a command in a script, in the wording of Redis up to 7.0 and from 7.2
 * on (and Valkey).
 */
const REFUSED =
  /\b(NOAUTH|WRONGPASS|NOPERM)\b|invalid (username-)?password|AUTH failed|The user executing the script can't|ACL failure in script/i;

/** Refusals of a command, a key or a channel as such, rather than of a password. */
const REFUSED_COMMAND = /no permissions to run the|The user executing the script can't run/;
const REFUSED_KEY = /permissions to access (a key|one of the keys)|can't access at least one of the keys/i;
const REFUSED_CHANNEL = /permissions to access (a channel|one of the channels)|can't publish to the channel/i;

const refusedUs = (text: string) => `Redis refused us: ${text.slice(0, 200).replace(/\.$/, "")}.`;

/** Message of ioredis if every Sentinel answered, and none had an address, or only that of a replica. */
const UNKNOWN_MASTER = /^All sentinels are unreachable\. Retrying from scratch after \d+ms\.$/;

const TLS = /certificate|altnames|before secure TLS|SSL routines|:ssl3?_/i;

/** The connection is open, and no answer arrives on it. */
export const NO_ANSWER = "No answer in time";
const SILENT = /No answer in time|Socket timeout|Command timed out/;

const UNAVAILABLE =
  /ECONN|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EPIPE|EAI_AGAIN|Connection is closed|Socket timeout|Stream isn't writeable|Command timed out|max retries|sentinels are unreachable|Too many Cluster redirections|None of startup nodes|Failed to refresh slots|CLUSTERDOWN|LOADING|MASTERDOWN|TRYAGAIN|Cluster isn't ready|connect/i;

interface Known {
  readonly pattern: RegExp;
  /** Default: `REDIS_UNAVAILABLE`. */
  readonly code?: ErrorCode;
  /** Made of the message, without a final period. */
  readonly message: string | ((text: string) => string);
  /** @param command the refused command, as ioredis sent it */
  readonly remedy: string | ((text: string, command: Sent) => string);
}

interface Sent {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** The command that the user lacks: an older Redis does not name it if a script runs it. */
function lackedCommand(text: string): string {
  const name = /run the '([^']+)'/.exec(text)?.[1];
  const grant = name ? `Grant it to the user: +${name}` : "ACL LOG names the command; grant it to the user";
  return `${grant} (docs/deployment.md lists all that Carillon needs). Read-only users, such as carillon-viewer, cannot make changes.`;
}

/** The namespace of the keys or channels that a command names. */
function namespaceOf({ args }: Sent): string {
  const names = args.map((arg) => /^\{([^:}]+)[:}]/.exec(String(arg))?.[1]);
  return names.find((name) => name !== undefined) ?? "NAMESPACE";
}

/** For a URL that gives a number, and for a cluster that receives one. */
export const NO_DATABASES = {
  what: "a cluster has no numbered databases.",
  remedy: "A Redis Cluster has only database 0: leave the number out of the Redis URL.",
};

/** The first match wins. */
const KNOWN: readonly Known[] = [
  {
    pattern: /\bOVERTAKEN\b/,
    code: "STALE_PLAN",
    message: "another apply has begun meanwhile.",
    remedy: "Plan again.",
  },
  { pattern: REFUSED_COMMAND, code: "REDIS_AUTH", message: refusedUs, remedy: lackedCommand },
  {
    pattern: REFUSED_KEY,
    code: "REDIS_AUTH",
    message: refusedUs,
    remedy: (_, sent) =>
      `Check user and password, and that its ACL has the keys of this namespace: ${["~{N}:*", "~{N:*}:*"].join(" ").replaceAll("N", namespaceOf(sent))}.`,
  },
  {
    pattern: REFUSED_CHANNEL,
    code: "REDIS_AUTH",
    message: refusedUs,
    remedy: (_, sent) =>
      `Grant the channels of this namespace to the user: ${"&{N}:wake &{N}:cancel".replaceAll("N", namespaceOf(sent))}.`,
  },
  {
    pattern: /\bNOAUTH\b/,
    code: "REDIS_AUTH",
    message: "Redis wants a password.",
    remedy:
      "Give user and password in the Redis URL, special characters percent-encoded: redis://user:password@host.",
  },
  {
    pattern: REFUSED,
    code: "REDIS_AUTH",
    message: refusedUs,
    remedy:
      "Give the right user and password in the Redis URL, special characters percent-encoded, and the ACL that docs/deployment.md lists.",
  },
  {
    pattern: /READONLY/,
    code: "REDIS_READ_ONLY",
    message: "this Redis is a read-only replica.",
    remedy: "Point the URL at the master.",
  },
  {
    pattern: /^OOM|OOM command not allowed/,
    code: "REDIS_OUT_OF_MEMORY",
    message: "Redis is out of memory.",
    remedy: "Raise maxmemory or remove data; nothing was written.",
  },
  {
    pattern: /NOREPLICAS/,
    message: "Redis accepts no writes: too few replicas are connected.",
    remedy: "Writes resume when min-replicas-to-write replicas are connected; nothing was written.",
  },
  {
    pattern: /\bMISCONF\b/,
    message: "Redis accepts no writes: it cannot write to its disk.",
    remedy: "See the log of Redis for the cause; nothing was written.",
  },
  {
    pattern: /^(BUSY|UNKILLABLE) /,
    message: "Redis is busy with a script that runs for too long.",
    remedy: "The script is not Carillon's; SCRIPT KILL ends it if it has written nothing. Nothing was done.",
  },
  {
    pattern: /^ERR max number of clients/,
    message: "Redis accepts no more connections.",
    remedy: "Raise maxclients, or close unused connections.",
  },
  {
    pattern: UNKNOWN_MASTER,
    message: "the Sentinels name no master that takes writes.",
    remedy:
      "Check the name at the end of the Redis URL. During a failover the connection recovers by itself.",
  },
  {
    pattern: /^DENIED\b/,
    message: "Redis is in protected mode: without a password, it accepts only clients of its own host.",
    remedy: "Set a password or ACL users on the server, and give them in the Redis URL.",
  },
  {
    pattern: /wrong version number|packet length too long/,
    message: "this port of Redis does not speak TLS.",
    remedy: "Use redis:// instead of rediss://, or the port of Redis that speaks TLS.",
  },
  {
    pattern: TLS,
    message: (text) => `TLS with Redis failed: ${text}.`,
    remedy: "Check the certificates (REDIS_TLS_CA_FILE and its like) and that this port of Redis speaks TLS.",
  },
  {
    pattern: /DB index is out of range/,
    message: "this Redis has no database with that number.",
    remedy: "Check the number at the end of the Redis URL.",
  },
  {
    pattern: /Unknown RESP type/,
    message: "the server at that address does not speak the Redis protocol.",
    remedy: "Check host and port of the Redis URL.",
  },
  {
    pattern: /SELECT is not allowed in cluster mode/,
    message: NO_DATABASES.what,
    remedy: NO_DATABASES.remedy,
  },
  {
    pattern: /cluster support disabled/,
    message: "this Redis is not a cluster.",
    remedy: "Name one server in the Redis URL, or only nodes of one cluster.",
  },
  {
    pattern: /^MOVED \d/,
    message: "this Redis is a cluster, and the connection is for a single server.",
    remedy:
      "A cluster is recognised by INFO (allow +info), and not through a socket: name several of its nodes, separated by commas.",
  },
  {
    pattern: SILENT,
    message: "Redis is reached, and does not answer in time.",
    remedy: "A command may hold it (SLOWLOG), its host may be overloaded, or the network slow.",
  },
  {
    pattern: /ENOTFOUND|EAI_AGAIN/,
    message: (text) => `the host of the Redis URL has no address: ${text}.`,
    remedy:
      "Check the name, and the DNS of this machine: the address of a private network resolves only inside it.",
  },
  {
    pattern: /connect (ENOENT|EACCES|ENOTSOCK) /,
    message: (text) => `the socket of Redis cannot be opened: ${text}.`,
    remedy: "Check the path in the Redis URL, unixsocket and unixsocketperm of Redis, and that Redis runs.",
  },
  {
    // Redis takes the first bytes of TLS for a command that is not yet complete.
    pattern: /ETIMEDOUT/,
    message: (text) => `Redis cannot be reached: ${text}.`,
    remedy: "Check host, port and firewalls: a port without TLS needs redis:// instead of rediss://.",
  },
  {
    // A server that expects TLS ends the connection.
    pattern: /ECONNRESET|Connection is closed/,
    message: (text) => `Redis cannot be reached: ${text}.`,
    remedy:
      "Check that it runs and that the URL is right: rediss:// for a port that speaks TLS, redis:// for one that does not.",
  },
  {
    pattern: UNAVAILABLE,
    message: (text) => `Redis cannot be reached: ${text}.`,
    remedy: "Check that it runs and that the URL is right.",
  },
];

/** Maps an error of Redis or the connection to a coded error. */
export function redisError(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  withoutPassword(error);
  const text = error instanceof Error ? error.message : String(error);
  const { lastNodeError, previousErrors } = (error ?? {}) as {
    lastNodeError?: unknown;
    previousErrors?: unknown[];
  };
  // The cause of a failed cluster command or transaction.
  const nested = lastNodeError ?? previousErrors?.[0];
  if (nested && nested !== error) return redisError(nested);
  const known = KNOWN.find(({ pattern }) => pattern.test(text));
  if (!known) return new CarillonError("REDIS_ERROR", text, { cause: error });
  const { code = "REDIS_UNAVAILABLE", message, remedy } = known;
  const sentence = text.replace(/\.$/, "");
  const sent = { name: "", args: [], ...(error as { command?: Sent } | undefined)?.command };
  return new CarillonError(code, typeof message === "string" ? message : message(sentence), {
    remedy: typeof remedy === "string" ? remedy : remedy(text, sent),
    cause: error,
  });
}

/** Whether Redis as a whole refuses or cannot be reached; any other error concerns one key or one task. */
export function failsForAll(error: unknown): boolean {
  const { code } = redisError(error);
  return code.startsWith("REDIS_") && code !== "REDIS_ERROR";
}

/** The command may or may not have been executed: repeat it, or read the result. */
export function isUnknown(error: unknown): boolean {
  return isCarillonError(error, "REDIS_UNAVAILABLE");
}
