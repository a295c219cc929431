import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { CarillonError } from "@carillon/sdk";
import { type Store, type StoredToken, TOKEN_ROLES, type TokenRole } from "@carillon/sdk/internal";
import { unreachable } from "./errors.js";

/** The tokens of the environment by role; several during a rotation. */
export type Tokens = Readonly<Partial<Record<TokenRole, readonly string[]>>>;

export interface AuthOptions {
  tokens: Tokens;
  /** Separates the sessions of two consoles on one host, which share their cookies. */
  namespace: string;
  /** Holds the named tokens; default: there are none. */
  store?: Pick<Store, "ready" | "tokens"> | undefined;
  now?: (() => number) | undefined;
}

export const SESSION_MS = 12 * 3_600_000;

/** A token as the console stores it. */
export interface Credential {
  readonly role: TokenRole;
  /** The author of all changes made with it: the token's name; for a token of the environment, its role. */
  readonly name: string;
  /** The owners whose tasks it may see and touch; absent: all. */
  readonly owners?: readonly string[];
  /** SHA-256, in hexadecimal digits. */
  readonly digest: string;
  /** Keys that sign the sessions of the token; new sessions use the first. */
  readonly keys: readonly Buffer[];
}

export interface Session {
  readonly id: string;
  /** The token that opened it. */
  readonly credential: Credential;
}

/**
 * Checks tokens and sessions. A session is `name.expiry.id.mac`: it survives a restart, is valid on every console with
 * the same tokens, and ends when the token that opened it is removed. Sessions of a token of the environment are signed
 * with a key stretched from that token, so that a viewer learns nothing about the admin's token. Those of a named token
 * are signed with a key made from an admin's key and the stored hash, so that the hash alone opens nothing.
 */
export class Auth {
  readonly cookie: string;
  readonly #credentials: readonly Credential[];
  readonly #admins: readonly Buffer[];
  readonly #store: AuthOptions["store"];
  readonly #now: () => number;

  constructor({ tokens, namespace, store, now = Date.now }: AuthOptions) {
    this.cookie = `carillon_${namespace}`;
    this.#store = store;
    this.#now = now;
    this.#credentials = TOKEN_ROLES.flatMap((role) =>
      (tokens[role] ?? []).map((token) => ({
        role,
        name: role,
        digest: digest(token).toString("hex"),
        keys: [scryptSync(token, `carillon ${namespace} ${role}`, 32)],
      })),
    );
    const admins = this.#credentials.filter(({ role }) => role === "admin").flatMap(({ keys }) => keys);
    this.#admins = admins.length > 0 ? admins : [randomBytes(32)];
  }

  /**
   * The token of the environment with this secret, compared with all of them in constant time; else the named one,
   * found with one read.
   * @throws `TOKEN_EXPIRED`; `REDIS_UNAVAILABLE` at once while Redis is down, for a named token
   */
  async credential(token: string): Promise<Credential | undefined> {
    const given = digest(token);
    let found: Credential | undefined;
    for (const known of this.#credentials) {
      if (timingSafeEqual(given, Buffer.from(known.digest, "hex"))) found ??= known;
    }
    if (found || !token.startsWith("carillon_")) return found;
    const named = await this.#tokens?.find(token);
    if (!named) return undefined;
    if (!this.#hasExpired(named)) return this.#credentialOf(named);
    const at = new Date(named.expires ?? 0).toISOString();
    throw new CarillonError("TOKEN_EXPIRED", `the token ${named.name} expired at ${at}.`, {
      remedy: "Ask an admin for a new one.",
    });
  }

  get #tokens(): Store["tokens"] | undefined {
    if (this.#store && !this.#store.ready) throw unreachable();
    return this.#store?.tokens;
  }

  #hasExpired({ expires }: StoredToken): boolean {
    return expires !== undefined && expires <= this.#now();
  }

  #credentialOf({ name, role, owners, sha256 }: StoredToken): Credential {
    const keys = this.#admins.map((key) => createHmac("sha256", key).update(sha256).digest());
    return { role, name, ...(owners && { owners }), digest: sha256, keys };
  }

  openSession({ name, keys }: Credential): string {
    const expiry = (this.#now() + SESSION_MS).toString(36);
    const claims = [name, expiry, randomBytes(16).toString("base64url")].join(".");
    return `${claims}.${sign(keys[0] as Buffer, claims)}`;
  }

  /**
   * Undefined if it is not valid, or if it or its token has expired.
   * @throws `REDIS_UNAVAILABLE` as `credential`
   */
  async session(value: string): Promise<Session | undefined> {
    const [, claims = "", name = "", expiry = "", id = "", mac = ""] = SESSION.exec(value) ?? [];
    if (!(Number.parseInt(expiry, 36) > this.#now())) return undefined;
    const given = digest(mac);
    const credential = (await this.#credentialsOf(name)).find(({ keys }) =>
      keys.some((key) => timingSafeEqual(given, digest(sign(key, claims)))),
    );
    return credential && { id, credential };
  }

  async #credentialsOf(name: string): Promise<readonly Credential[]> {
    if ((TOKEN_ROLES as readonly string[]).includes(name))
      return this.#credentials.filter(({ role }) => role === name);
    const named = await this.#tokens?.get(name);
    return named && !this.#hasExpired(named) ? [this.#credentialOf(named)] : [];
  }
}

/** A session token: its claims (name, expiry and id) and their signature. A name may contain dots. */
const SESSION = /^(([A-Za-z0-9._-]{1,128})\.([^.]+)\.([^.]+))\.([^.]+)$/;

function sign(key: Buffer, claims: string): string {
  return createHmac("sha256", key).update(claims).digest("base64url");
}

/** Digests have the equal length that `timingSafeEqual` needs, and do not reveal that of the token. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

const LIMITS = {
  /** Wrong tokens of one address that are answered at once. */
  failures: 10,
  /** Time after which an address has all of these again, in ms. */
  windowMs: 60_000,
  /** Addresses remembered at once. The one that failed longest ago is forgotten first. */
  addresses: 10_000,
  /** Delay of the answers beyond that number, in ms. */
  delayMs: 1_000,
  /** Largest number of answers that are delayed at once, over all addresses. */
  waiting: 100,
  /** A clock in ms. */
  now: () => performance.now(),
  sleep: (ms: number): Promise<unknown> => setTimeout(ms),
};
export type LimiterOptions = Partial<typeof LIMITS>;

/** State of one address: `left` wrong tokens are answered at once, as of `at`. */
interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** Answers to a wrong token: at once, late, or with an error because too many answers are delayed. */
type Answered = "at once" | "late" | "too many";

/**
 * Slows down wrong tokens, with a token bucket per address. It never delays right tokens, so nobody can lock out others at
 * the same address. It saves work and log lines; only the length of a token prevents guessing.
 */
export class FailureLimiter {
  readonly #limits: typeof LIMITS;
  readonly #buckets = new Map<string, Bucket>();
  #waiting = 0;

  constructor(limits: LimiterOptions = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Resolves when a wrong token of this address may be answered. */
  async failed(address: string): Promise<Answered> {
    if (this.#take(network(address.slice(0, ADDRESS)))) return "at once";
    if (this.#waiting >= this.#limits.waiting) return "too many";
    this.#waiting += 1;
    try {
      await this.#limits.sleep(this.#limits.delayMs);
    } finally {
      this.#waiting -= 1;
    }
    return "late";
  }

  #take(from: string): boolean {
    const { failures, windowMs, addresses } = this.#limits;
    const now = this.#limits.now();
    const { left, at } = this.#buckets.get(from) ?? { left: failures, at: now };
    const refilled = Math.min(failures, left + ((now - at) * failures) / windowMs);
    const free = refilled >= 1;
    this.#buckets.delete(from);
    this.#buckets.set(from, { left: free ? refilled - 1 : refilled, at: now });
    const oldest = this.#buckets.keys().next().value as string;
    if (this.#buckets.size > addresses) this.#buckets.delete(oldest);
    return free;
  }
}

/** Longest text of an address, with its zone or port. A client may send any text. */
const ADDRESS = 64;

/** The first 64 bits of an IPv6 address, because one host can use any address of its network. */
function network(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("::");
  const left = head.split(":");
  const right = tail.split(":");
  const missing = address.includes("::") ? 8 - left.length - right.length : 0;
  return [...left, ...new Array<string>(Math.max(0, missing)).fill("0"), ...right].slice(0, 4).join(":");
}
