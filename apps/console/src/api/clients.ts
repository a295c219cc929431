import { hostname } from "node:os";
import { CarillonError, Client } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import { type Ctx, type Middleware, queryOf } from "../context.js";

/** Number of clients that are kept, because requests may name ever new tokens. */
const KEPT = 1_000;

/**
 * Gives requests the client of their token: it records the token's name as the author, and is bound to an owner if the
 * token is. So no route needs a check of its own.
 */
export function clientsOf(store: Store): Middleware {
  const kept = new Map<string, Client>();
  const origin = `api ${hostname()}`;
  const clientOf = (by: string, owner: string | undefined): Client => {
    const key = JSON.stringify([by, owner]);
    // With the usual payload limit.
    const client = kept.get(key) ?? new Client({ store, by, origin, owner });
    if (kept.size >= KEPT) kept.clear();
    kept.set(key, client);
    return client;
  };
  return async (c, next) => {
    c.set("clientOf", clientOf);
    await next();
  };
}

/** The client for a request whose body has been read. @throws `FORBIDDEN`, `INVALID_OPTION` of the field `owner` */
export function clientFor(c: Ctx): Client {
  const { name, owners } = c.var.identity;
  return c.var.clientOf(name, owners && ownerOf(c, owners));
}

/** The owner that a request names in its path, query or body, or else the token's only one. */
function ownerOf(c: Ctx, owners: readonly string[]): string {
  const body = c.var.body as { owner?: unknown } | undefined;
  // `/me` lists the owners, so it works without a choice.
  const [only] = owners.length === 1 || c.req.path.endsWith("/me") ? owners : [];
  const owner = c.req.param("owner") ?? queryOf(c)["owner"] ?? body?.owner ?? only;
  if (owner === undefined)
    throw new CarillonError("INVALID_OPTION", "missing; the token is bound to several owners.", {
      field: "owner",
      remedy: `Add ?owner= with one of ${owners.join(", ")}.`,
    });
  if (owners.includes(owner as string)) return owner as string;
  throw new CarillonError("FORBIDDEN", `this token is bound to the owner ${owners.join(", ")}.`, {
    field: "owner",
    remedy: "Use a token without owners, or with this one.",
  });
}
