import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { Repository } from "./repository.js";

/** Roles of the HTTP API and the console. Each may do everything that the previous ones may. */
export const TOKEN_ROLES = ["viewer", "operator", "admin"] as const;

export type TokenRole = (typeof TOKEN_ROLES)[number];

/** A named token as stored: its secret is not. */
export interface StoredToken {
  readonly name: string;
  readonly role: TokenRole;
  /** The owners whose tasks it may see and touch; absent: all. */
  readonly owners?: readonly string[];
  /** UTC ms. */
  readonly created: number;
  readonly createdBy?: string;
  /** UTC ms; absent: never. */
  readonly expires?: number;
  /** Hash of the secret, in hexadecimal digits. */
  readonly sha256: string;
}

/** The secret names its token, so that one read finds it; the last 43 characters are 256 random bits. */
const SECRET = /^carillon_([A-Za-z0-9._-]{1,128})_[A-Za-z0-9_-]{43}$/;

export function newSecret(name: string): string {
  return `carillon_${name}_${randomBytes(32).toString("base64url")}`;
}

export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** The named tokens of a namespace, for the HTTP API and the console: one hash, by name. */
export class TokenRepository extends Repository {
  /** Stores a token. Returns false if another one has the name. */
  async add(token: StoredToken): Promise<boolean> {
    return this.settings.change(this.keys, "tokens", async (client, key) =>
      (await client.hexists(key, token.name)) === 1 ? {} : { set: [token.name, JSON.stringify(token)] },
    );
  }

  async get(name: string): Promise<StoredToken | undefined> {
    const text = await this.link.ask((client) => client.hget(this.keys.tokens, name));
    return text === null ? undefined : decode(name, text);
  }

  /** The token with this secret, expired ones too. */
  async find(secret: string): Promise<StoredToken | undefined> {
    const [, name] = SECRET.exec(secret) ?? [];
    const token = name === undefined ? undefined : await this.get(name);
    const given = Buffer.from(digestOf(secret));
    return token && timingSafeEqual(given, Buffer.from(token.sha256)) ? token : undefined;
  }

  /** All tokens by name, expired ones too. */
  async list(): Promise<StoredToken[]> {
    const all = await this.link.ask((client) => client.hgetall(this.keys.tokens));
    const tokens = Object.entries(all).flatMap(([name, text]) => decode(name, text) ?? []);
    return tokens.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Returns whether there was one; also one that this version cannot read. */
  async remove(name: string): Promise<boolean> {
    return this.settings.field(this.keys, "tokens", name, undefined);
  }
}

/** Undefined if the text is corrupt or foreign: such a token opens nothing. */
function decode(name: string, text: string): StoredToken | undefined {
  try {
    const token = JSON.parse(text) as StoredToken | null;
    const sound =
      token?.name === name &&
      TOKEN_ROLES.includes(token.role) &&
      /^[0-9a-f]{64}$/.test(token.sha256) &&
      Number.isFinite(token.created) &&
      (token.expires === undefined || Number.isFinite(token.expires)) &&
      (token.owners === undefined || isTexts(token.owners));
    return sound ? token : undefined;
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string");
}
