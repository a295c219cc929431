import type { IncomingMessage } from "node:http";
import type { Client } from "@carillon/sdk";
import type { TokenRole } from "@carillon/sdk/internal";
import type { Context, MiddlewareHandler } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";

/** Properties that all requests of one console share. */
export interface Site {
  /** Path at which it is mounted: "" or `/ops/carillon`. */
  readonly basePath: string;
  /** Number of proxies in front of it that add to `X-Forwarded-For`. */
  readonly trustedProxies: number;
  /** Hides fields in JSON. */
  readonly replacer: ((this: unknown, key: string, value: unknown) => unknown) | undefined;
  readonly bullBoard: boolean;
  /** The address of traces, with `{traceId}`. */
  readonly traceUrl?: string | undefined;
  /** Whether people sign in and out at this console, not elsewhere. */
  readonly signsIn: boolean;
  /** Aborted when the console closes, which ends open streams. */
  readonly closing: AbortSignal;
}

/** The sender of a request. */
export interface Person {
  /** Its role: `viewer`, `operator` or `admin`. */
  readonly role: TokenRole;
  /** The author of all its changes: 1 to 128 characters. */
  readonly name: string;
  /** The owners whose tasks it may see and touch; absent: all. */
  readonly owners?: readonly string[] | undefined;
}

export interface Identity extends Person {
  /** Identifies senders whose expensive calls may run concurrently: a token, one of its sessions, or a person. */
  readonly key: string;
  readonly by: "bearer" | "session" | "own";
}

export interface Env {
  /** The request and response of `@hono/node-server`. */
  Bindings: {
    readonly incoming?: IncomingMessage;
    /** Whether answers may be compressed here: frameworks compress what they send themselves, and would do so again. */
    readonly compresses?: boolean;
  };
  Variables: {
    site: Site;
    /** Set for every request that came through the guard. */
    identity: Identity;
    /** Whether the token or session of the request still holds; absent behind a sign-in of the user's own. */
    holds?: () => Promise<boolean>;
    clientOf(by: string, owner: string | undefined): Client;
    /** Its JSON body; undefined: it has none. */
    body: unknown;
  };
}

/** A request and its answer. */
export type Ctx = Context<Env>;

export type Middleware = MiddlewareHandler<Env>;

/** The address without the base path, which a proxy may have removed already. */
function below(basePath: string, { pathname, search }: URL): URL["href"] {
  const rest = pathname.startsWith(basePath) ? pathname.slice(basePath.length) : undefined;
  return (rest === "" ? "/" : rest?.startsWith("/") ? rest : pathname) + search;
}

/** Reads the path by which a request is routed, percent-encoded as it was sent. A slash at its end counts only in the API. */
export function pathReader(basePath: string): (request: Request) => string {
  return (request) => {
    const [path = "/"] = below(basePath, new URL(request.url)).split("?", 1);
    return path.length > 1 && path.endsWith("/") && !path.startsWith("/api/") ? path.slice(0, -1) : path;
  };
}

/** Path and query below the base path, as they were sent. */
export function addressOf(c: Ctx): string {
  return below(c.var.site.basePath, new URL(c.req.url));
}

/** Parameters of the query; one that is repeated is a list. */
export function queryOf(c: Ctx): Record<string, string | string[] | undefined> {
  const { searchParams } = new URL(c.req.url);
  return Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => {
      const all = searchParams.getAll(name);
      return [name, all.length > 1 ? all : all[0]];
    }),
  );
}

/**
 * The client's network address: as many entries before the end of `X-Forwarded-For` as there are trusted proxies. "" if
 * unknown.
 */
export function clientAddress(c: Ctx): string {
  const forwarded = (c.req.header("x-forwarded-for") ?? "").split(",").map((one) => one.trim());
  const env = c.env as Env["Bindings"] | undefined;
  const known = [env?.incoming?.socket.remoteAddress ?? "", ...forwarded.filter(Boolean).reverse()];
  return known[Math.min(c.var.site.trustedProxies, known.length - 1)] as string;
}

/** Answers with JSON in which hidden fields are replaced. */
export function json(c: Ctx, body: unknown, status = 200): Response {
  const text = JSON.stringify(body, c.var.site.replacer);
  return c.body(text, status as ContentfulStatusCode, { "Content-Type": "application/json; charset=utf-8" });
}
