import { CarillonError, isCarillonError } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import type { Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import { type Auth, type Credential, type FailureLimiter, SESSION_MS, type Session } from "./auth.js";
import { coded, refuse, unreachable } from "./errors.js";
import { type LoginPage, loginPage } from "./pages.js";
import { isApi, isBoard, isForAdmins, isForPrograms, isOwned, isRead, onlyActs, onlyAsks } from "./paths.js";

/** The token of a request, and how it was authenticated. */
export interface Identity extends Pick<Credential, "name" | "role" | "owners"> {
  credential: Credential;
  by: "bearer" | "session";
}

export interface GuardOptions {
  auth: Auth;
  /** Stores the sessions that were ended. */
  store: Store;
  limiter: FailureLimiter;
  logger: Logger;
}

/** `res.locals.identity`, set for every request that came through the guard. */
export function identityOf(res: Response): Identity {
  return res.locals["identity"] as Identity;
}

/** Authenticates requests by link, form or header, and turns away all others. */
export class Guard {
  readonly #auth: Auth;
  readonly #store: Store;
  readonly #limiter: FailureLimiter;
  readonly #logger: Logger;

  constructor({ auth, store, limiter, logger }: GuardOptions) {
    this.#auth = auth;
    this.#store = store;
    this.#limiter = limiter;
    this.#logger = logger;
  }

  /** `?token=…` opens a session and redirects to the address without it, which keeps the token out of the address bar and the history. */
  readonly link: RequestHandler = (req, res, next) => {
    const [path = "/", query = ""] = req.originalUrl.split(/\?(.*)/s, 2);
    const params = new URLSearchParams(query);
    const token = params.get("token");
    if (token === null || !isRead(req) || isApi(req) || !opensPage(req)) return next();
    params.delete("token");
    const to = params.size > 0 ? `${path}?${params}` : path;
    // A page of another site can open this address any number of times, but only the user can press the button.
    if (isFromElsewhere(req)) return this.#turnAway(req, res, 401, { next: to, token });
    return this.#signIn(req, res, token, to);
  };

  readonly form: RequestHandler = (req, res) => {
    const body = (req.body ?? {}) as Record<string, unknown>;
    const token = typeof body["token"] === "string" ? body["token"] : "";
    return this.#signIn(req, res, token, typeof body["next"] === "string" ? body["next"] : "/");
  };

  async #signIn(req: Request, res: Response, token: string, next: string): Promise<void> {
    const credential = await this.#credential(req, res, token, next);
    if (!credential) return;
    const session = this.#auth.openSession(credential);
    res.cookie(this.#auth.cookie, session, { ...cookieOptions(req), maxAge: SESSION_MS });
    const { role, name } = credential;
    this.#logger.info({ role, token: name, from: req.ip }, "signed in");
    res.redirect(303, localPath(next));
  }

  /** Undefined for a wrong or expired token, which is answered here. A right token is always accepted, even after wrong ones from its address. */
  async #credential(
    req: Request,
    res: Response,
    token: string,
    next: string,
  ): Promise<Credential | undefined> {
    try {
      const credential = await this.#auth.credential(token);
      if (!credential) await this.#turnAwayWrong(req, res, next);
      return credential;
    } catch (error) {
      if (!isCarillonError(error, "TOKEN_EXPIRED")) throw error;
      this.#turnAway(req, res, 401, { next, problem: error.message }, error);
      return undefined;
    }
  }

  async #turnAwayWrong(req: Request, res: Response, next: string): Promise<void> {
    const from = req.ip ?? "";
    const answered = await this.#limiter.failed(from);
    if (answered === "too many") {
      res.set("Retry-After", "5");
      return this.#turnAway(req, res, 429, {
        next,
        problem: "Too many wrong tokens. Try again in a moment.",
      });
    }
    // Late answers are not logged, because they would fill the log.
    if (answered === "at once") this.#logger.warn({ from }, "sign-in failed");
    this.#turnAway(req, res, 401, { next, problem: "This token is not valid." });
  }

  readonly signOut: RequestHandler = async (req, res) => {
    // A page of another site cannot send the session (SameSite=Strict), so it cannot end one either.
    try {
      const session = await this.#session(req);
      if (session) {
        res.clearCookie(this.#auth.cookie, cookieOptions(req));
        await this.#store.registry.endSession(session.id, SESSION_MS);
      }
    } catch (thrown) {
      res.clearCookie(this.#auth.cookie, cookieOptions(req));
      const error = coded(thrown);
      this.#logger.error({ code: error.code, error: error.message }, "a session could not be ended");
      if (!wantsPage(req)) return refuse(res, error);
      const problem = `Signed out in this browser only. The session could not be ended elsewhere: ${error.message}`;
      return void res
        .status(503)
        .type("html")
        .send(loginPage({ next: "/", problem }));
    }
    res.redirect(303, "/");
  };

  readonly identify: RequestHandler = async (req, res, next) => {
    const [scheme, bearer] = (req.get("authorization") ?? "").split(/ +/, 2);
    if (scheme?.toLowerCase() === "bearer" && bearer) {
      const credential = await this.#credential(req, res, bearer, "/");
      if (!credential) return;
      res.locals["identity"] = { ...credential, credential, by: "bearer" } satisfies Identity;
      return next();
    }
    const session = await this.#session(req);
    if (!session || (await this.#hasEnded(session))) {
      return this.#turnAway(req, res, 401, { next: req.originalUrl });
    }
    // Browsers send the cookie for pages of any site, so a write without an Origin cannot be trusted.
    if (!isRead(req) && req.get("origin") === undefined) {
      return refuse(
        res,
        new CarillonError("FORBIDDEN", "missing.", {
          field: "Origin",
          remedy: "Programs authenticate with `Authorization: Bearer <token>`.",
        }),
      );
    }
    const { credential } = session;
    res.locals["identity"] = { ...credential, credential, by: "session" } satisfies Identity;
    next();
  };

  async #session(req: Request): Promise<Session | undefined> {
    const cookie = cookieOf(req, this.#auth.cookie);
    return cookie === undefined ? undefined : this.#auth.session(cookie);
  }

  /** Whether the session was ended, here or on another console. @throws `REDIS_UNAVAILABLE` at once while Redis is down */
  async #hasEnded({ id }: Session): Promise<boolean> {
    if (!this.#store.ready) throw unreachable();
    return this.#store.registry.sessionHasEnded(id);
  }

  readonly roleAllows: RequestHandler = (req, res, next) => {
    const { role, owners } = identityOf(res);
    if (owners && !isOwned(req)) {
      const what = `this token is bound to the owner ${owners.join(", ")}, and this concerns the whole namespace.`;
      return refuse(res, new CarillonError("FORBIDDEN", what, { remedy: "Use a token without owners." }));
    }
    if (role === "admin") return next();
    if (isForAdmins(req)) {
      const remedy = "Sign in with the token of an admin.";
      return refuse(
        res,
        new CarillonError("FORBIDDEN", "only an admin may see and change tokens.", { remedy }),
      );
    }
    if (onlyAsks(req) || (role === "operator" && onlyActs(req))) return next();
    const [what, whose] =
      role === "operator"
        ? ["an operator may not define, edit or remove anything", "an admin"]
        : ["a viewer may only read", onlyActs(req) ? "an operator or an admin" : "an admin"];
    const remedy = `Sign in with the token of ${whose}.`;
    refuse(res, new CarillonError("FORBIDDEN", `${what}.`, { remedy }));
  };

  /** Logs changes and who made them. Paths contain names of queues, tasks and jobs, never a token. */
  readonly audit: RequestHandler = (req, res, next) => {
    if (onlyAsks(req)) return next();
    const { role, name, by } = identityOf(res);
    // Not "finish", because the request counts even if the client left before the answer.
    res.once("close", () => {
      const { method, originalUrl } = req;
      const outcome = res.writableFinished ? { status: res.statusCode } : { left: true };
      this.#logger.info(
        {
          role,
          token: name,
          by,
          from: req.ip,
          method,
          path: originalUrl.split("?")[0],
          ...outcome,
          // Names the task if the path does not.
          location: res.get("location"),
        },
        "write",
      );
    });
    next();
  };

  /** @param error for programs; default: one that describes the status and the page's problem */
  #turnAway(req: Request, res: Response, status: 401 | 429, page: LoginPage, error?: CarillonError): void {
    const { problem } = page;
    res.status(status);
    if (status === 401) res.set("WWW-Authenticate", 'Bearer realm="carillon"');
    if (wantsPage(req)) {
      return void res.type("html").send(loginPage({ ...page, next: localPath(page.next) }));
    }
    if (error) return refuse(res, error);
    // The board's page shows this to users whose session has ended.
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

/** Whether the browser opens a page, and does not fetch an image, a frame or a script for another page. */
function opensPage(req: Request): boolean {
  return (req.get("sec-fetch-dest") ?? "document") === "document";
}

/** Whether a page of another site made the browser open this one. Browsers do not send this to `http:` addresses of other machines. */
function isFromElsewhere(req: Request): boolean {
  return !["none", "same-origin", undefined].includes(req.get("sec-fetch-site"));
}

function cookieOptions(req: Request) {
  // Behind several proxies, the first entry is the one that the browser used.
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

/** The path, if it is one of this console: not `//elsewhere`, `/\elsewhere`, a whole URL, or the form itself. Else `/`. */
function localPath(path: string): string {
  return /^\/(?![/\\]|log(?:in|out)(?:\?|$))[\x21-\x5b\x5d-\x7e]*$/.test(path) ? path : "/";
}
