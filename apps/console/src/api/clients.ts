import { hostname } from "node:os";
import { CarillonError, Client } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import type { Request, RequestHandler, Response } from "express";
import { identityOf } from "../guard.js";

/** Clients that are kept: a request may name ever new tokens. */
const KEPT = 1_000;

/**
 * Gives requests the client of their token: it records the token's name as the author, and is bound to an owner if the token is. So no
 * route needs a check of its own.
 */
export function clientsOf(store: Store): RequestHandler {
  const kept = new Map<string, Client>();
  const from = `api ${hostname()}`;
  const clientOf = (by: string, owner: string | undefined): Client => {
    const key = JSON.stringify([by, owner]);
    // With the usual payload limit.
    const client = kept.get(key) ?? new Client({ store, by, from, owner });
    if (kept.size >= KEPT) kept.clear();
    kept.set(key, client);
    return client;
  };
  return (_req, res, next) => {
    res.locals["clientOf"] = clientOf;
    next();
  };
}

/** The client for a request whose body has been read. @throws `FORBIDDEN`, `INVALID_OPTION` of the field `owner` */
export function clientFor(req: Request, res: Response): Client {
  const { name, owners } = identityOf(res);
  return res.locals["clientOf"](name, owners && ownerOf(req, owners)) as Client;
}

/** The owner that a request names, in its path, query or body, or the token's only one. */
function ownerOf(req: Request, owners: readonly string[]): string {
  const body = req.body as { owner?: unknown } | null | undefined;
  const [only] = owners.length === 1 ? owners : [];
  const owner = req.params["owner"] ?? req.query["owner"] ?? body?.owner ?? only;
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
