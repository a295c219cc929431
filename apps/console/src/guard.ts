import { CarillonError } from "@carillon/sdk";
import type { Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { Auth, FailureLimiter, Role } from "./auth.js";
import { refuse } from "./errors.js";
import { loginPage } from "./pages.js";
import { isApi, isBoard, isForPrograms, isRead, onlyActs, onlyAsks } from "./paths.js";

/** Who asks, and how we know. */
interface Identity {
  role: Role;
  by: "bearer" | "session";
}

export interface GuardOptions {
  auth: Auth;
  limiter: FailureLimiter;
  logger: Logger;
}

/** `res.locals.identity`, set for every request that came through the guard. */
export function identityOf(res: Response): Identity {
  return res.locals["identity"] as Identity;
}

/** The front door: sign-in by link, form or header; without one of them nothing behind it is reached. */
export class Guard {
  readonly #auth: Auth;
  readonly #limiter: FailureLimiter;
  readonly #logger: Logger;

  constructor({ auth, limiter, logger }: GuardOptions) {
    this.#auth = auth;
    this.#limiter = limiter;
    this.#logger = logger;
  }

  /** `?token=…` opens a session, and the answer leads to the address without it: it stays out of the address bar and the history. */
  readonly link: RequestHandler = (req, res, next) => {
    const [path = "/", query = ""] = req.originalUrl.split(/\?(.*)/s, 2);
    const params = new URLSearchParams(query);
    const token = params.get("token");
    if (token === null || !isRead(req) || isApi(req) || !opensPage(req)) return next();
    params.delete("token");
    this.#signIn(req, res, token, params.size > 0 ? `${path}?${params}` : path);
  };

  readonly form: RequestHandler = (req, res) => {
    const body = (req.body ?? {}) as Record<string, unknown>;
    const token = typeof body["token"] === "string" ? body["token"] : "";
    this.#signIn(req, res, token, typeof body["next"] === "string" ? body["next"] : "/");
  };

  #signIn(req: Request, res: Response, token: string, next: string): void {
    const role = this.#roleOfToken(req, res, token, next);
    if (!role) return;
    const { value, maxAgeMs } = this.#auth.openSession(role);
    res.cookie(this.#auth.cookie, value, { ...cookieOptions(req), maxAge: maxAgeMs });
    this.#logger.info({ role, from: req.ip }, "signed in");
    res.redirect(303, localPath(next));
  }

  /** Undefined: the answer is sent already. */
  #roleOfToken(req: Request, res: Response, token: string, next: string): Role | undefined {
    const from = req.ip ?? "";
    const locked = this.#limiter.lockedFor(from);
    if (locked > 0) {
      res.set("Retry-After", String(Math.ceil(locked / 1000)));
      this.#turnAway(req, res, 429, "Too many failed sign-ins. Try again in a minute.", next);
      return undefined;
    }
    const role = this.#auth.roleOfToken(token);
    if (role) return role;
    this.#limiter.failed(from);
    this.#logger.warn({ from }, "sign-in failed");
    this.#turnAway(req, res, 401, "This token is not the right one.", next);
    return undefined;
  }

  readonly signOut: RequestHandler = (req, res) => {
    // A page of another site cannot send the session (SameSite=Strict), so it cannot end one either.
    if (this.#sessionRole(req)) res.clearCookie(this.#auth.cookie, cookieOptions(req));
    res.redirect(303, "/");
  };

  readonly identify: RequestHandler = (req, res, next) => {
    const [scheme, bearer] = (req.get("authorization") ?? "").split(/ +/, 2);
    if (scheme?.toLowerCase() === "bearer" && bearer) {
      const role = this.#roleOfToken(req, res, bearer, "/");
      if (!role) return;
      res.locals["identity"] = { role, by: "bearer" } satisfies Identity;
      return next();
    }
    const role = this.#sessionRole(req);
    if (!role) return this.#turnAway(req, res, 401, undefined, req.originalUrl);
    // A cookie is sent by the browser whoever wrote the page: without an Origin nobody vouches for the request.
    if (!isRead(req) && req.get("origin") === undefined) {
      return refuse(
        res,
        new CarillonError("FORBIDDEN", "missing.", {
          field: "Origin",
          remedy: "Programs authenticate with `Authorization: Bearer <token>`.",
        }),
      );
    }
    res.locals["identity"] = { role, by: "session" } satisfies Identity;
    next();
  };

  #sessionRole(req: Request): Role | undefined {
    const session = cookieOf(req, this.#auth.cookie);
    return session === undefined ? undefined : this.#auth.roleOfSession(session);
  }

  readonly roleAllows: RequestHandler = (req, res, next) => {
    const { role } = identityOf(res);
    if (role === "admin" || onlyAsks(req) || (role === "operator" && onlyActs(req))) return next();
    const [what, whose] =
      role === "operator"
        ? ["an operator defines, edits and removes nothing", "an admin"]
        : ["a viewer can only look", onlyActs(req) ? "an operator or an admin" : "an admin"];
    const remedy = `Sign in with the token of ${whose}.`;
    refuse(res, new CarillonError("FORBIDDEN", `${what}.`, { remedy }));
  };

  /** Who changed what. Paths hold names of queues, tasks and jobs, never a token. */
  readonly audit: RequestHandler = (req, res, next) => {
    if (onlyAsks(req)) return next();
    const { role, by } = identityOf(res);
    // Not "finish": whoever leaves before the answer has asked for it all the same.
    res.once("close", () => {
      const { method, originalUrl } = req;
      const outcome = res.writableFinished ? { status: res.statusCode } : { left: true };
      this.#logger.info(
        {
          ...{ role, by, from: req.ip, method, path: originalUrl.split("?")[0], ...outcome },
          // Where the path alone does not say which task it was.
          location: res.get("location"),
        },
        "write",
      );
    });
    next();
  };

  #turnAway(req: Request, res: Response, status: 401 | 429, problem: string | undefined, next: string): void {
    res.status(status);
    if (status === 401) res.set("WWW-Authenticate", 'Bearer realm="carillon"');
    if (wantsPage(req)) return void res.type("html").send(loginPage(localPath(next), problem));
    // The board's page shows it to whoever had signed in, and is no more.
    const how = isBoard(req) ? "Load the page again to sign in" : "Open the console in a browser";
    const remedy = `${how}, or send \`Authorization: Bearer <token>\`.`;
    refuse(
      res,
      status === 429
        ? new CarillonError("RATE_LIMITED", problem ?? "")
        : new CarillonError("UNAUTHORIZED", problem ?? "sign in first.", { remedy }),
    );
  }
}

function wantsPage(req: Request): boolean {
  return !isForPrograms(req) && (req.get("accept") ?? "").includes("text/html");
}

/**
 * Whether the browser opens a page. It may also fetch an image, a frame or a script for a page of someone else, which could fail to
 * sign in so often that this address is locked. Old browsers do not say what they fetch.
 */
function opensPage(req: Request): boolean {
  return (req.get("sec-fetch-dest") ?? "document") === "document";
}

function cookieOptions(req: Request) {
  // Behind several proxies the first in it is what the browser used.
  const [forwarded = ""] = (req.get("x-forwarded-proto") ?? "").split(",");
  const secure = req.secure || forwarded.trim() === "https";
  return { httpOnly: true, sameSite: "strict", path: "/", secure } as const;
}

function cookieOf(req: Request, name: string): string | undefined {
  for (const pair of (req.get("cookie") ?? "").split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}

/** Only ever a path of this console: not `//elsewhere`, not `/\elsewhere`, not a whole URL. The form itself is no place to go to. */
function localPath(path: string): string {
  return /^\/(?![/\\]|log(?:in|out)(?:\?|$))[\x21-\x5b\x5d-\x7e]*$/.test(path) ? path : "/";
}
