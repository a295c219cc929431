import { CarillonError, isCarillonError, type Logger } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import { getCookie, setCookie } from "hono/cookie";
import { readBody } from "./api/body.js";
import { type Auth, type Credential, type FailureLimiter, SESSION_MS, type Session } from "./auth.js";
import { addressOf, type Ctx, clientAddress, type Identity, type Middleware } from "./context.js";
import { coded, refuse, unreachable } from "./errors.js";
import { isForgeable, withoutOrigin } from "./identity.js";
import { type LoginPage, loginPage } from "./pages.js";
import { isApi, isBoard, isRead, wantsPage } from "./paths.js";

export interface GuardOptions {
  auth: Auth;
  /** Stores the sessions that were ended. */
  store: Store;
  limiter: FailureLimiter;
  logger: Logger;
}

/** The form, before the base path is added. */
type Form = Omit<LoginPage, "base">;

/** Most bytes of a form that signs in. */
const MAX_FORM = 4 * 1024;

/** Authenticates requests by link, form or header, and turns away all others. */
export class Guard {
  constructor(private readonly parts: GuardOptions) {}

  /**
   * `?token=…` opens a session and redirects to the address without it, which keeps the token out of the address bar
   * and the history.
   */
  readonly link: Middleware = async (c, next) => {
    const [path = "/", query = ""] = addressOf(c).split(/\?(.*)/s, 2);
    const params = new URLSearchParams(query);
    const token = params.get("token");
    if (token === null || !isRead(c) || isApi(c) || !opensPage(c)) return next();
    params.delete("token");
    const to = params.size > 0 ? `${path}?${params}` : path;
    // A page of another site can open this address any number of times, but only the user can press the button.
    if (isFromElsewhere(c)) return this.#turnAway(c, 401, { next: to, token });
    return this.#signIn(c, token, to);
  };

  readonly form = async (c: Ctx): Promise<Response> => {
    const bytes = await readBody(c, MAX_FORM);
    const isForm = c.req.header("content-type")?.startsWith("application/x-www-form-urlencoded");
    const fields = new URLSearchParams(isForm ? bytes.toString() : "");
    return this.#signIn(c, fields.get("token") ?? "", fields.get("next") ?? "/");
  };

  async #signIn(c: Ctx, token: string, next: string): Promise<Response> {
    const credential = await this.#credential(c, token, next);
    if (credential instanceof Response) return credential;
    const session = this.parts.auth.openSession(credential);
    setCookie(c, this.parts.auth.cookie, session, { ...cookieOptions(c), maxAge: SESSION_MS / 1_000 });
    const { role, name } = credential;
    this.parts.logger.info({ role, token: name, from: clientAddress(c) }, "signed in");
    return c.redirect(c.var.site.basePath + localPath(next), 303);
  }

  /** An answer for a wrong or expired token. A right token is always accepted, even after wrong ones from its address. */
  async #credential(c: Ctx, token: string, next: string): Promise<Credential | Response> {
    try {
      return (await this.parts.auth.credential(token)) ?? (await this.#turnAwayWrong(c, next));
    } catch (error) {
      if (!isCarillonError(error, "TOKEN_EXPIRED")) throw error;
      return this.#turnAway(c, 401, { next, problem: error.message }, error);
    }
  }

  async #turnAwayWrong(c: Ctx, next: string): Promise<Response> {
    const from = clientAddress(c);
    const answered = await this.parts.limiter.failed(from);
    if (answered === "too many") {
      c.header("Retry-After", "5");
      return this.#turnAway(c, 429, { next, problem: "Too many wrong tokens. Try again in a moment." });
    }
    // Late answers are not logged, because they would fill the log.
    if (answered === "at once") this.parts.logger.warn({ from }, "sign-in failed");
    return this.#turnAway(c, 401, { next, problem: "This token is not valid." });
  }

  readonly signOut = async (c: Ctx): Promise<Response> => {
    // A page of another site cannot send the session (SameSite=Strict), so it cannot end one either.
    const forget = () =>
      setCookie(c, this.parts.auth.cookie, "", { ...cookieOptions(c), expires: new Date(0) });
    try {
      const session = await this.#session(c);
      if (session) {
        forget();
        await this.parts.store.registry.endSession(session.id, SESSION_MS);
      }
    } catch (thrown) {
      forget();
      const error = coded(thrown);
      this.parts.logger.error({ code: error.code, error: error.message }, "a session could not be ended");
      if (!wantsPage(c)) return refuse(c, error);
      const problem = `Signed out in this browser only. The session could not be ended elsewhere: ${error.message}`;
      return this.#page(c, 503, { next: "/", problem });
    }
    return c.redirect(`${c.var.site.basePath}/`, 303);
  };

  readonly identify: Middleware = async (c, next) => {
    const [scheme, bearer] = (c.req.header("authorization") ?? "").split(/ +/, 2);
    const secret = scheme?.toLowerCase() === "bearer" ? bearer : undefined;
    if (secret) {
      const credential = await this.#credential(c, secret, "/");
      if (credential instanceof Response) return credential;
      c.set("identity", identityOf(credential, "bearer", credential.digest));
      c.set("holds", async () => (await this.parts.auth.credential(secret)) !== undefined);
      return next();
    }
    const session = await this.#session(c);
    if (!session || (await this.#hasEnded(session))) return this.#turnAway(c, 401, { next: addressOf(c) });
    // Browsers send the cookie for pages of any site, so a write without an Origin cannot be trusted.
    if (isForgeable(c)) return refuse(c, withoutOrigin());
    c.set("identity", identityOf(session.credential, "session", session.id));
    c.set("holds", async () => {
      const still = await this.#session(c);
      return still !== undefined && !(await this.#hasEnded(still));
    });
    return next();
  };

  async #session(c: Ctx): Promise<Session | undefined> {
    const cookie = getCookie(c, this.parts.auth.cookie);
    return cookie === undefined ? undefined : this.parts.auth.session(cookie);
  }

  /** Whether the session was ended, here or on another console. @throws `REDIS_UNAVAILABLE` at once while Redis is down */
  async #hasEnded({ id }: Session): Promise<boolean> {
    if (!this.parts.store.ready) throw unreachable();
    return this.parts.store.registry.sessionHasEnded(id);
  }

  /** @param error for programs; default: one that describes the status and the page's problem */
  #turnAway(c: Ctx, status: 401 | 429, form: Form, error?: CarillonError): Response {
    const { problem } = form;
    if (status === 401) c.header("WWW-Authenticate", 'Bearer realm="carillon"');
    if (wantsPage(c)) return this.#page(c, status, form);
    if (error) return refuse(c, error);
    // The board's page shows this to users whose session has ended.
    const how = isBoard(c) ? "Load the page again to sign in" : "Open the console in a browser";
    const remedy = `${how}, or send \`Authorization: Bearer <token>\`.`;
    return refuse(
      c,
      status === 429
        ? new CarillonError("RATE_LIMITED", problem ?? "")
        : new CarillonError("UNAUTHORIZED", problem ?? "sign in first.", { remedy }),
    );
  }

  #page(c: Ctx, status: 401 | 429 | 503, form: Form): Response {
    return c.html(loginPage({ ...form, base: c.var.site.basePath, next: localPath(form.next) }), status);
  }
}

function identityOf({ role, name, owners }: Credential, by: Identity["by"], key: string): Identity {
  return { role, name, ...(owners && { owners }), key, by };
}

/** Whether the browser opens a page, rather than fetching an image, a frame or a script for one. */
function opensPage({ req }: Ctx): boolean {
  return (req.header("sec-fetch-dest") ?? "document") === "document";
}

/**
 * Whether a page of another site made the browser open this one. Browsers do not send this to `http:` addresses of
 * other machines.
 */
function isFromElsewhere({ req }: Ctx): boolean {
  return !["none", "same-origin", undefined].includes(req.header("sec-fetch-site"));
}

function cookieOptions({ req, var: { site } }: Ctx) {
  // Behind several proxies, the first entry is the one that the browser used.
  const [forwarded = ""] = (req.header("x-forwarded-proto") ?? "").split(",");
  const secure = req.url.startsWith("https:") || forwarded.trim() === "https";
  return { httpOnly: true, sameSite: "Strict", path: site.basePath || "/", secure } as const;
}

/** The path, if it is one of this console: not `//elsewhere`, `/\elsewhere`, a whole URL, or the form itself. Else `/`. */
function localPath(path: string): string {
  return /^\/(?![/\\]|log(?:in|out)(?:\?|$))[\x21-\x5b\x5d-\x7e]*$/.test(path) ? path : "/";
}
