import { CarillonError } from "@carillon/core";
import { assertName, assertOptions, quote } from "@carillon/core/internal";
import { digestOf, newSecret, type StoredToken, TOKEN_ROLES, type TokenRole } from "@carillon/store";
import { instant } from "../instant.js";
import { assertList } from "../options.js";
import { shown } from "./change.js";
import type { Scope } from "./scope.js";
import type { DeleteOptions } from "./types.js";

/** A token to create. */
export interface TokenInput {
  /**
   * Letters, digits, dots, dashes and underscores, at most 128; not the name of a role. It is the author of all changes
   * made with it.
   */
  readonly name: string;
  readonly role: TokenRole;
  /** The owners whose tasks it may see and touch, 1 to 100. Default: all, and the whole namespace. */
  readonly owners?: readonly string[] | undefined;
  /** End of its validity: ISO 8601 with offset, a Date or epoch ms. Default: none, until it is revoked. */
  readonly expires?: string | number | Date | undefined;
  /** The author to record. Default: the client's `by`. */
  readonly by?: string | undefined;
}

/** A named token, without anything of its secret. */
export interface Token extends Omit<StoredToken, "sha256"> {
  /** Whether its time is over: it opens nothing. */
  readonly expired: boolean;
}

/** Most owners of a token. */
const MOST_OWNERS = 100;

/** Named tokens for the HTTP API and the console, at `client.tokens`. */
export class Tokens {
  readonly #scope: Scope;

  /** @internal */
  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * Creates a token. Its secret is returned here and never again: only a hash is stored.
   *
   * @throws `INVALID_NAME`, `INVALID_OPTION`; `CONFLICT` if there is a token with this name, an expired one too; `FORBIDDEN` for a client
   * that is bound to an owner
   */
  async create(input: TokenInput): Promise<{ token: Token; secret: string }> {
    assertOptions(input, ["name", "role", "owners", "expires", "by"]);
    this.#scope.assertUnbound();
    const { role } = input;
    const name = assertName(input.name, "name");
    if ((TOKEN_ROLES as readonly string[]).includes(name))
      throw new CarillonError("INVALID_NAME", "the name of a role.", {
        field: "name",
        remedy: "Name the person or the program that will use it.",
      });
    if (!TOKEN_ROLES.includes(role))
      throw new CarillonError("INVALID_OPTION", `got ${quote(role)}.`, {
        field: "role",
        remedy: `Use one of ${TOKEN_ROLES.join(", ")}.`,
      });
    const owners = input.owners === undefined ? undefined : checkedOwners(input.owners);
    const expires = input.expires === undefined ? undefined : instant(input.expires, "expires");
    const by = this.#scope.author(input.by);
    const { store } = this.#scope;
    const now = await store.serverTime();
    if (expires !== undefined && expires <= now)
      throw new CarillonError("INVALID_OPTION", "in the past.", {
        field: "expires",
        remedy: "Give a time after now.",
      });
    const secret = newSecret(name);
    const facts = { name, role, ...(owners && { owners }), ...(expires !== undefined && { expires }) };
    const token = { ...facts, created: now, ...(by && { createdBy: by }) };
    if (!(await store.tokens.add({ ...token, sha256: digestOf(secret) })))
      throw new CarillonError("CONFLICT", "there is a token with this name.", {
        field: "name",
        remedy: "Give another name, such as one with a date, or revoke that token first.",
      });
    this.#scope.log("token.create", { token: name }, by, { after: shown({ role, owners, expires }) });
    return { token: { ...token, expired: false }, secret };
  }

  /** The tokens by name, expired ones too. @throws `FORBIDDEN` for a client that is bound to an owner */
  async list(): Promise<Token[]> {
    this.#scope.assertUnbound();
    const { store } = this.#scope;
    const [tokens, now] = await Promise.all([store.tokens.list(), store.serverTime()]);
    return tokens.map(({ sha256: _, ...token }) => ({
      ...token,
      expired: token.expires !== undefined && token.expires <= now,
    }));
  }

  /**
   * Deletes a token: it opens nothing from now on, nor do the sessions that it opened.
   *
   * @throws `INVALID_NAME`, `TOKEN_NOT_FOUND`, `FORBIDDEN` for a client that is bound to an owner
   */
  async revoke(name: string, options: DeleteOptions = {}): Promise<void> {
    assertOptions(options, ["by"]);
    this.#scope.assertUnbound();
    const by = this.#scope.author(options.by);
    if (!(await this.#scope.store.tokens.remove(assertName(name, "name"))))
      throw new CarillonError("TOKEN_NOT_FOUND", `there is no token ${quote(name)}.`, {
        field: "name",
        remedy: "It may have been revoked: list the tokens.",
      });
    this.#scope.log("token.revoke", { token: name }, by);
  }
}

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
function checkedOwners(owners: readonly string[]): string[] {
  assertList(owners, "owners", "Give the owners' names.");
  if (owners.length === 0 || owners.length > MOST_OWNERS)
    throw new CarillonError("INVALID_OPTION", `${owners.length} owners.`, {
      field: "owners",
      remedy: `Give 1 to ${MOST_OWNERS}, or leave the field out for all.`,
    });
  return [...new Set(owners.map((owner, i) => assertName(owner, `owners[${i}]`)))];
}
