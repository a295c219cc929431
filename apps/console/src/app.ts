import { Redactor } from "@carillon/ops/internal";
import type { Client, Logger } from "@carillon/sdk";
import type { Store, TokenRole } from "@carillon/sdk/internal";
import { Hono } from "hono";
import { audit, roleAllows } from "./access.js";
import { apiRouter } from "./api/router.js";
import { Auth, FailureLimiter, type Tokens } from "./auth.js";
import { Board } from "./bull-board.js";
import { type Ctx, type Env, json, pathReader, type Site } from "./context.js";
import { errorHandler, notFound, refuse } from "./errors.js";
import { Guard } from "./guard.js";
import { KEPT_FOR_AN_HOUR, sameOrigin, securityHeaders } from "./headers.js";
import { identifyBy, type OwnAuth } from "./identity.js";
import { MOVED, PAGE_PATHS } from "./page-paths.js";
import { LOGIN_STYLE, logo, logoutPage } from "./pages.js";
import { API_PATH, BOARD_PATH } from "./paths.js";
import { author } from "./task-adapter.js";
import { Ui } from "./ui.js";

export interface AppOptions {
  /** Uses `store`. The caller closes it. */
  client: Client;
  store: Store;
  bullBoard?: boolean | undefined;
  logger: Logger;
  auth: Tokens | OwnAuth;
  /** Path at which it is mounted, for example `/ops/carillon`; default "": at the root. */
  basePath?: string | undefined;
  /** Fields of payloads whose values are hidden from everyone; default none. */
  redact?: readonly string[] | undefined;
  /** Interval in ms at which the list of queues is read; default 3,000. */
  refreshEvery?: number | undefined;
  /** Number of proxies in front of the console that add to `X-Forwarded-For`; default 0: the header is ignored. */
  trustedProxies?: number | undefined;
  /** The address of traces, with `{traceId}`; default: no links. */
  traceUrl?: string | undefined;
  /** Default: 10 wrong tokens per minute and address are answered at once. */
  limiter?: FailureLimiter | undefined;
  /** Ends open streams. */
  closing?: AbortSignal | undefined;
}

/** Creates the console's app. A request passes the handlers in the order of these lines. */
export function createApp(options: AppOptions): { app: Hono<Env>; board: Board } {
  const { client, store, bullBoard = true, logger, auth, basePath = "", redact = [] } = options;
  const redactor = new Redactor(redact);
  const site: Site = {
    basePath,
    trustedProxies: options.trustedProxies ?? 0,
    replacer: redactor.replacer,
    bullBoard,
    traceUrl: options.traceUrl,
    signsIn: typeof auth !== "function",
    closing: options.closing ?? new AbortController().signal,
  };
  const { refreshEvery } = options;
  const board = new Board({ client, store, logger, redactor, site, refreshEvery });
  const ui = new Ui(basePath);
  const app = new Hono<Env>({ getPath: pathReader(basePath) });
  app.notFound(notFound);
  app.onError(errorHandler(logger));

  app.use(async (c, next) => {
    c.set("site", site);
    await next();
  });
  app.use(securityHeaders);
  app.get("/health", (c) => json(c, { status: "ok" }));
  app.get("/ready", (c) => {
    const { problem, writeProblem } = board;
    if (problem) return json(c, { status: "unavailable", code: problem.code }, 503);
    if (writeProblem) return json(c, { status: "read-only", code: writeProblem.code }, 503);
    return json(c, { status: "ready" });
  });
  app.get("/carillon.svg", (c) => file(c, "image/svg+xml", logo(c.req.query("state") ?? "")));
  app.get("/login.css", (c) => file(c, "text/css; charset=utf-8", LOGIN_STYLE));
  app.get("/assets/:file", ui.asset);

  app.use(sameOrigin);
  if (typeof auth === "function") app.use(identifyBy(auth, logger));
  else {
    const limiter = options.limiter ?? new FailureLimiter();
    const tokens = new Auth({ tokens: auth, namespace: client.namespace, store });
    const guard = new Guard({ auth: tokens, store, limiter, logger });
    app.post("/login", guard.form);
    app.get("/logout", (c) => c.html(logoutPage(basePath)));
    app.post("/logout", guard.signOut);
    app.use(guard.link);
    app.use(guard.identify);
  }
  app.use(roleAllows);
  app.use(audit(logger));

  app.route(API_PATH, apiRouter(store, redactor));
  for (const path of PAGE_PATHS) app.get(path, ui.page);
  for (const [path, to] of Object.entries(MOVED)) app.get(path, movedTo(basePath + to));
  app.all(`${BOARD_PATH}/*`, (c) => toBoard(c, board));
  app.get("*", ui.noPage);
  return { app, board };
}

function file(c: Ctx, type: string, text: string): Response {
  return c.body(text, 200, { "Content-Type": type, "Cache-Control": KEPT_FOR_AN_HOUR });
}

/** Leads to another address, with the query. Its `:name` is that of the path. */
function movedTo(to: string) {
  return (c: Ctx) => {
    const address = to.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(c.req.param(name) ?? ""));
    const { search } = new URL(c.req.url);
    return c.redirect(address + (address.includes("?") ? search.replace("?", "&") : search));
  };
}

function toBoard(c: Ctx, board: Board): Response | Promise<Response> {
  const { name, role } = c.var.identity;
  const app = board.app(role as TokenRole);
  if (!app) return notFound();
  if (c.req.path.startsWith(`${BOARD_PATH}/api`) && board.problem) return refuse(c, board.problem);
  return author.run(name, () => app.fetch(c.req.raw, c.env));
}
