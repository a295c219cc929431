import { createHash, createHmac, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";

/** Each may do what those before it may. */
export const ROLES = ["viewer", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

export interface AuthOptions {
  /** Opens everything. */
  token: string;
  /** Opens everything for reading, and for acting on what there is. */
  operatorToken?: string | undefined;
  /** Opens everything for reading. */
  viewerToken?: string | undefined;
  /** Two consoles on one host have one cookie jar: the namespace keeps their sessions apart. */
  namespace: string;
  now?: (() => number) | undefined;
}

/** How long a session lasts, in ms. */
const SESSION_MS = 12 * 3_600_000;

/**
 * Who may come in. A session is `role.expiry.nonce.mac`: it outlives a restart and holds on every console with the
 * same tokens, and a new token ends all sessions of the old one. Each role's sessions are signed with a key stretched
 * from its own token, so a viewer learns nothing about the admin's.
 */
export class Auth {
  readonly cookie: string;
  readonly #roles: readonly { role: Role; digest: Buffer; key: Buffer }[];
  readonly #now: () => number;

  constructor({ token, operatorToken, viewerToken, namespace, now = Date.now }: AuthOptions) {
    this.cookie = `carillon_${namespace}`;
    this.#now = now;
    const secrets = { admin: token, operator: operatorToken, viewer: viewerToken };
    this.#roles = ROLES.flatMap((role) => {
      const secret = secrets[role];
      if (secret === undefined) return [];
      return [{ role, digest: digest(secret), key: scryptSync(secret, `carillon ${namespace} ${role}`, 32) }];
    });
  }

  /** In constant time: every token is compared, whichever matches. */
  roleOfToken(token: string): Role | undefined {
    const given = digest(token);
    let found: Role | undefined;
    for (const known of this.#roles) {
      if (timingSafeEqual(given, known.digest)) found ??= known.role;
    }
    return found;
  }

  openSession(role: Role): { value: string; maxAgeMs: number } {
    const claims = [
      role,
      (this.#now() + SESSION_MS).toString(36),
      randomBytes(16).toString("base64url"),
    ].join(".");
    return { value: `${claims}.${this.#sign(role, claims)}`, maxAgeMs: SESSION_MS };
  }

  roleOfSession(value: string): Role | undefined {
    const parts = value.split(".");
    const [name, expiry, , mac] = parts;
    const known = this.#roles.find(({ role }) => role === name);
    if (parts.length !== 4 || !known || expiry === undefined || mac === undefined) return undefined;
    const expected = this.#sign(known.role, parts.slice(0, 3).join("."));
    if (!timingSafeEqual(digest(mac), digest(expected))) return undefined;
    return Number.parseInt(expiry, 36) > this.#now() ? known.role : undefined;
  }

  #sign(role: Role, claims: string): string {
    const key = this.#roles.find((known) => known.role === role)?.key ?? randomBytes(32);
    return createHmac("sha256", key).update(claims).digest("base64url");
  }
}

/** Digests are of one length, which `timingSafeEqual` needs and the token's own would give away. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

export interface LimiterOptions {
  /** Failures that an address may have in one window; default 10. */
  failures?: number | undefined;
  /** The window, in ms; default one minute. It begins with the first failure. */
  windowMs?: number | undefined;
  /** Addresses remembered at once; default 10,000. The one that failed longest ago is forgotten first. */
  addresses?: number | undefined;
  now?: (() => number) | undefined;
}

/** Counts failed sign-ins by address. While an address is locked, not even the right token opens. */
export class FailureLimiter {
  readonly #failures: number;
  readonly #windowMs: number;
  readonly #addresses: number;
  readonly #now: () => number;
  readonly #seen = new Map<string, { count: number; until: number }>();

  constructor({ failures = 10, windowMs = 60_000, addresses = 10_000, now = Date.now }: LimiterOptions = {}) {
    this.#failures = failures;
    this.#windowMs = windowMs;
    this.#addresses = addresses;
    this.#now = now;
  }

  /** For how many ms the address is still locked; 0: it is not. */
  lockedFor(address: string): number {
    const entry = this.#seen.get(network(address));
    if (!entry || entry.count < this.#failures) return 0;
    return Math.max(0, entry.until - this.#now());
  }

  failed(address: string): void {
    const from = network(address);
    const now = this.#now();
    const before = this.#seen.get(from);
    const entry =
      before && before.until > now
        ? { count: before.count + 1, until: before.until }
        : { count: 1, until: now + this.#windowMs };
    this.#seen.delete(from);
    this.#seen.set(from, entry);
    if (this.#seen.size > this.#addresses) this.#seen.delete(this.#seen.keys().next().value as string);
  }
}

/** One host can take any address of its IPv6 network: the first 64 bits stand for all. */
function network(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [head = "", tail = ""] = address.split("::");
  const left = head.split(":");
  const right = tail.split(":");
  const missing = address.includes("::") ? 8 - left.length - right.length : 0;
  return [...left, ...new Array<string>(Math.max(0, missing)).fill("0"), ...right].slice(0, 4).join(":");
}
