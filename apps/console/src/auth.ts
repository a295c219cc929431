import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import { setTimeout } from "node:timers/promises";

/** Each role may do everything that the previous ones may. */
export const ROLES = ["viewer", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** The tokens of each role; several while one replaces another. */
export type Tokens = Readonly<Partial<Record<Role, readonly string[]>>>;

export interface AuthOptions {
  tokens: Tokens;
  /** Separates the sessions of two consoles on one host, which share their cookies. */
  namespace: string;
  now?: (() => number) | undefined;
}

/** How long a session lasts, in ms. */
export const SESSION_MS = 12 * 3_600_000;

/** A token as the console stores it. */
export interface Credential {
  readonly role: Role;
  readonly digest: Buffer;
  /** Signs the sessions that the token opens. */
  readonly key: Buffer;
}

export interface Session {
  readonly id: string;
  /** The token that opened it. */
  readonly credential: Credential;
}

/**
 * Checks tokens and sessions. A session is `role.expiry.id.mac`: it survives a restart, is valid on every console with the same
 * tokens, and ends when the token that opened it is removed. Each token's sessions are signed with a key stretched from that token, so
 * that a viewer learns nothing about the admin's token.
 */
export class Auth {
  readonly cookie: string;
  readonly #credentials: readonly Credential[];
  readonly #now: () => number;

  constructor({ tokens, namespace, now = Date.now }: AuthOptions) {
    this.cookie = `carillon_${namespace}`;
    this.#now = now;
    this.#credentials = ROLES.flatMap((role) =>
      (tokens[role] ?? []).map((token) => ({
        role,
        digest: digest(token),
        key: scryptSync(token, `carillon ${namespace} ${role}`, 32),
      })),
    );
  }

  /** Compares every token, to take constant time. */
  credential(token: string): Credential | undefined {
    const given = digest(token);
    let found: Credential | undefined;
    for (const known of this.#credentials) {
      if (timingSafeEqual(given, known.digest)) found ??= known;
    }
    return found;
  }

  openSession({ role, key }: Credential): string {
    const expiry = (this.#now() + SESSION_MS).toString(36);
    const claims = [role, expiry, randomBytes(16).toString("base64url")].join(".");
    return `${claims}.${sign(key, claims)}`;
  }

  /** Undefined if it is not valid, or expired. */
  session(value: string): Session | undefined {
    const parts = value.split(".");
    const [role, expiry, id, mac] = parts;
    if (parts.length !== 4 || expiry === undefined || id === undefined || mac === undefined) return undefined;
    const claims = parts.slice(0, 3).join(".");
    const given = digest(mac);
    const credential = this.#credentials.find(
      (known) => known.role === role && timingSafeEqual(given, digest(sign(known.key, claims))),
    );
    return credential && Number.parseInt(expiry, 36) > this.#now() ? { id, credential } : undefined;
  }
}

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

export interface LimiterOptions {
  /** Wrong tokens of one address that are answered at once; default 10. */
  failures?: number | undefined;
  /** How long an address needs to get all of these back, in ms; default one minute. */
  windowMs?: number | undefined;
  /** Addresses remembered at once; default 10,000. The one that failed longest ago is forgotten first. */
  addresses?: number | undefined;
  /** Delay of the answers to further ones, in ms; default 1,000. */
  delayMs?: number | undefined;
  /** Most answers that are delayed at once, over all addresses; default 100. */
  waiting?: number | undefined;
  /** A clock in ms. */
  now?: (() => number) | undefined;
  sleep?: ((ms: number) => Promise<unknown>) | undefined;
}

/** Wrong tokens of one address: `left` are answered at once, as of `at`. */
interface Bucket {
  readonly left: number;
  readonly at: number;
}

/** How a wrong token is answered: at once, late, or with an error because too many answers are delayed. */
type Answered = "at once" | "late" | "too many";

/**
 * Slows down wrong tokens, with a token bucket per address. It never delays right tokens, so nobody can lock out others at
 * the same address. It saves work and log lines; only the length of a token prevents guessing.
 */
export class FailureLimiter {
  readonly #failures: number;
  readonly #windowMs: number;
  readonly #addresses: number;
  readonly #delayMs: number;
  readonly #most: number;
  readonly #now: () => number;
  readonly #sleep: (ms: number) => Promise<unknown>;
  readonly #buckets = new Map<string, Bucket>();
  #waiting = 0;

  constructor({
    failures = 10,
    windowMs = 60_000,
    addresses = 10_000,
    delayMs = 1_000,
    waiting = 100,
    now = () => performance.now(),
    sleep = (ms) => setTimeout(ms),
  }: LimiterOptions = {}) {
    this.#failures = failures;
    this.#windowMs = windowMs;
    this.#addresses = addresses;
    this.#delayMs = delayMs;
    this.#most = waiting;
    this.#now = now;
    this.#sleep = sleep;
  }

  /** Resolves when a wrong token of this address may be answered. */
  async failed(address: string): Promise<Answered> {
    if (this.#take(network(address.slice(0, ADDRESS)))) return "at once";
    if (this.#waiting >= this.#most) return "too many";
    this.#waiting += 1;
    try {
      await this.#sleep(this.#delayMs);
    } finally {
      this.#waiting -= 1;
    }
    return "late";
  }

  #take(from: string): boolean {
    const now = this.#now();
    const { left, at } = this.#buckets.get(from) ?? { left: this.#failures, at: now };
    const refilled = Math.min(this.#failures, left + ((now - at) * this.#failures) / this.#windowMs);
    const free = refilled >= 1;
    this.#buckets.delete(from);
    this.#buckets.set(from, { left: free ? refilled - 1 : refilled, at: now });
    const oldest = this.#buckets.keys().next().value as string;
    if (this.#buckets.size > this.#addresses) this.#buckets.delete(oldest);
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
