import { invalid, quote } from "@carillon/core/internal";

/** Address and credentials of Redis from a URL. */
export interface RedisPlace {
  topology: "single" | "cluster" | "sentinel";
  /** Several: nodes of a cluster, or the Sentinels. None: a socket. */
  hosts: { host: string; port: number }[];
  /** A Unix socket. */
  path?: string;
  /** Addresses of this family only: 4 or 6; 0 for either. */
  family?: number;
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
  "Use redis://[user:password@]host:port[/db], several separated by commas for a cluster, " +
  "redis+sentinel://[user:password@]host:port,host:port/name[/db], or unix:///path; with rediss for TLS.";

/** A character in a user or password that ends it, also after an "@" of its own, or a "%" that begins no code. */
const NOT_ENCODED = /\/\/(?:[^@]*[/?#,][^@]*|[^,]*[/?#][^,]*)@|%(?![\da-f]{2})/i;

const ENCODE =
  "Percent-encode special characters of the user and the password: / is %2F, ? is %3F, # is %23, % is %25, a comma %2C.";

/**
 * Reads a URL: of one server, of nodes of a cluster (several URLs), of Sentinels, or of a socket. Special characters of users and
 * passwords are percent-encoded. A parameter or fragment that it does not know is an error.
 *
 * @throws `INVALID_OPTION`; the message never holds the URL, which may hold a password
 */
export function parseRedisUrl(text: string, field = "connection"): RedisPlace {
  try {
    if (text.includes("#")) throw new Mistake("it has a fragment, the part after #.");
    if (/^rediss?\+sentinel:/.test(text)) return sentinelPlace(text);
    return /^(redis\+)?unix:/.test(text) ? socketPlace(text) : plainPlace(text);
  } catch (error) {
    const encoded = !NOT_ENCODED.test(text);
    // A part of the password could be taken for a parameter.
    const what = error instanceof Mistake && encoded ? error.message : "not a Redis URL.";
    throw invalid(field, what, encoded ? REMEDY : ENCODE);
  }
}

/** Describes a URL without quoting a part of it that may be a password. */
class Mistake extends Error {}

function plainPlace(text: string): RedisPlace {
  const urls = text.split(",").map((part) => {
    const url = new URL(part.trim());
    if (!["redis:", "rediss:"].includes(url.protocol)) throw new TypeError("another scheme");
    return url;
  });
  const first = urls[0] as URL;
  if (urls.some(({ protocol }) => protocol !== first.protocol))
    throw new Mistake("some of the URLs use TLS and some do not.");
  const single = urls.length === 1;
  const ways = urls.map((url) => ({ ...login(url), ...database(url.pathname.slice(1)) }));
  const [way = {}, ...others] = ways.filter((one) => Object.keys(one).length > 0);
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(way)))
    throw new Mistake("the URLs differ in user, password or database.");
  const { family } = urls.map(({ search }) => parameters(search, single ? ["family"] : []))[0] ?? {};
  if (family !== undefined && !/^[046]$/.test(family)) throw new Mistake("family is not 0, 4 or 6.");
  return {
    topology: single ? "single" : "cluster",
    hosts: urls.map((url) => address(url, 6379)),
    tls: first.protocol === "rediss:",
    ...way,
    ...(family === undefined ? {} : { family: Number(family) }),
  };
}

function socketPlace(text: string): RedisPlace {
  const [, user, path, query = ""] =
    /^(?:redis\+)?unix:(?:\/\/(?:([^/?]*)@)?)?(\/(?!\/)[^?]+)(\?.*)?$/.exec(text) ?? [];
  if (path === undefined) throw new Mistake("the path of the socket is missing.");
  const { db = "" } = parameters(query, ["db"]);
  return {
    topology: "single",
    hosts: [],
    path: decodeURIComponent(path),
    tls: false,
    ...loginOf(user),
    ...database(db),
  };
}

/** Several hosts in one URL, which `URL` cannot parse. */
function sentinelPlace(text: string): RedisPlace {
  const [, tls, user, list = "", path = "", query = ""] =
    /^redis(s?)\+sentinel:\/\/(?:([^/?]*)@)?([^@/?]*)\/?([^?]*)(\?.*)?$/.exec(text) ?? [];
  const [name = "", db = "", ...more] = path.split("/");
  if (!/^[\w.-]+$/.test(name) || more.length > 0)
    throw new Mistake("the master's name after the Sentinels is missing or invalid.");
  const hosts = list.split(",").map((part) => address(new URL(`redis://${part.trim()}`), 26379));
  return {
    topology: "sentinel",
    hosts,
    name,
    tls: tls === "s",
    ...loginOf(user),
    ...database(db),
    ...parameters(query, ["sentinelUsername", "sentinelPassword"]),
  };
}

/** Remedies for parameters that other clients know. */
const INSTEAD: Readonly<Record<string, string>> = {
  tls: "write rediss:// for TLS",
  ssl: "write rediss:// for TLS",
  password: "write redis://:password@host",
  username: "write redis://user:password@host",
  db: "write the number after the host, as in redis://host/1",
};

/** The parameters of a URL, which are no others than `known`. */
function parameters<Name extends string>(query: string, known: readonly Name[]): { [name in Name]?: string } {
  // A "+" is itself, as in the rest of a URL and unlike in a form.
  const given = [...new URLSearchParams(query.replaceAll("+", "%2B"))];
  const unknown = given.map(([name]) => name).find((name) => !known.some((one) => one === name));
  if (unknown !== undefined) {
    const instead = Object.hasOwn(INSTEAD, unknown) ? `: ${INSTEAD[unknown]}` : "";
    throw new Mistake(`it has the parameter ${quote(unknown)}, which Carillon does not know${instead}.`);
  }
  return Object.fromEntries(given.filter(([, value]) => value !== "")) as { [name in Name]?: string };
}

function loginOf(user: string | undefined): Pick<RedisPlace, "username" | "password"> {
  return user === undefined ? {} : login(new URL(`redis://${user}@host`));
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
