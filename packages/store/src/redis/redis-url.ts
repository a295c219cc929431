import { CarillonError } from "@carillon/core";

/** Address and credentials of Redis from a URL. */
export interface RedisPlace {
  topology: "single" | "cluster" | "sentinel";
  /** Several: nodes of a cluster, or the Sentinels. */
  hosts: { host: string; port: number }[];
  tls: boolean;
  db?: number;
  username?: string;
  password?: string;
  /** The Sentinels' name for the master, and their own credentials. */
  name?: string;
  sentinelUsername?: string;
  sentinelPassword?: string;
}

const REMEDY =
  "Use redis://[user:password@]host:port[/db], several separated by commas for a cluster, or " +
  "redis+sentinel://[user:password@]host:port,host:port/name[/db]; with rediss for TLS.";

/**
 * Reads a URL: of one server, of nodes of a cluster (several URLs), or of Sentinels. Special characters of users and passwords
 * are percent-encoded.
 *
 * @throws `INVALID_OPTION`; the message never holds the URL, which may hold a password
 */
export function parseRedisUrl(text: string, field = "connection"): RedisPlace {
  try {
    return /^rediss?\+sentinel:/.test(text) ? sentinelPlace(text) : plainPlace(text);
  } catch (error) {
    const what = error instanceof Mistake ? error.message : "not a Redis URL.";
    throw new CarillonError("INVALID_OPTION", what, { field, remedy: REMEDY });
  }
}

/** Describes a URL without quoting it. */
class Mistake extends Error {}

function plainPlace(text: string): RedisPlace {
  const urls = text.split(",").map((part) => {
    const url = new URL(part.trim());
    if (!["redis:", "rediss:"].includes(url.protocol)) throw new TypeError("another scheme");
    return url;
  });
  const first = urls[0] as URL;
  if (urls.some(({ protocol }) => protocol !== first.protocol)) {
    throw new Mistake("some of the URLs use TLS and some do not.");
  }
  const topology = urls.length > 1 ? "cluster" : "single";
  const hosts = urls.map((url) => address(url, 6379));
  return {
    topology,
    hosts,
    tls: first.protocol === "rediss:",
    ...login(first),
    ...database(first.pathname.slice(1)),
  };
}

/** Several hosts in one URL, which `URL` cannot parse. */
function sentinelPlace(text: string): RedisPlace {
  const [, tls, user, list = "", path = "", query = ""] =
    /^redis(s?)\+sentinel:\/\/(?:([^@/?]*)@)?([^@/?]*)\/?([^?]*)\??(.*)$/.exec(text) ?? [];
  const [name = "", db = "", ...more] = path.split("/");
  if (!/^[\w.-]+$/.test(name) || more.length > 0)
    throw new Mistake("the master's name after the Sentinels is missing or invalid.");
  const hosts = list.split(",").map((part) => address(new URL(`redis://${part.trim()}`), 26379));
  return {
    topology: "sentinel",
    hosts,
    name,
    tls: tls === "s",
    ...(user === undefined ? {} : login(new URL(`redis://${user}@sentinels`))),
    ...database(db),
    ...sentinelLogin(query),
  };
}

function address({ hostname, port }: URL, standard: number): { host: string; port: number } {
  if (!hostname) throw new Mistake("a host is missing.");
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port ? Number(port) : standard };
}

function login({ username, password }: URL): Pick<RedisPlace, "username" | "password"> {
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
}

function database(text: string): Pick<RedisPlace, "db"> {
  if (text === "") return {};
  if (!/^\d{1,5}$/.test(text)) throw new Mistake("the database is not a number.");
  return Number(text) === 0 ? {} : { db: Number(text) };
}

function sentinelLogin(query: string): Pick<RedisPlace, "sentinelUsername" | "sentinelPassword"> {
  // A "+" is itself, as in the rest of a URL and unlike in a form.
  const given = new URLSearchParams(query.replaceAll("+", "%2B"));
  const { sentinelUsername, sentinelPassword, ...unknown } = Object.fromEntries(given);
  if (Object.keys(unknown).length > 0) {
    throw new Mistake("only sentinelUsername and sentinelPassword may stand after the question mark.");
  }
  return {
    ...(sentinelUsername ? { sentinelUsername } : {}),
    ...(sentinelPassword ? { sentinelPassword } : {}),
  };
}
