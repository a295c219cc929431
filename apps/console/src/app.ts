import type { Client } from "@carillon/sdk";
import type { Store } from "@carillon/sdk/internal";
import express, { type Express } from "express";
import type { Logger } from "pino";
import { apiRouter } from "./api/router.js";
import { Auth, FailureLimiter, type Tokens } from "./auth.js";
import { Board, type Connection } from "./board.js";
import { errorHandler, RequestError, refuse } from "./errors.js";
import { Guard, identityOf } from "./guard.js";
import { KEPT_FOR_AN_HOUR, sameOrigin, securityHeaders } from "./headers.js";
import { LOGIN_STYLE, LOGO } from "./pages.js";
import { API_PATH, BOARD_PATH, PAGE_PATHS } from "./paths.js";
import { Redactor } from "./redact.js";
import { author } from "./task-adapter.js";
import { Ui } from "./ui.js";

export interface AppOptions {
  /** Uses `store`. The caller closes it. */
  client: Client;
  store: Store;
  /** For BullMQ's queues; `connect(spec, "safe")`. The caller closes it. */
  connection: Connection;
  logger: Logger;
  tokens: Tokens;
  /** Fields of payloads whose values are hidden from everyone; default none. */
  redact?: readonly string[] | undefined;
  /** How often the list of queues is read, in ms; default 3,000. */
  refreshEvery?: number | undefined;
  /** Number of proxies in front of the console that add to `X-Forwarded-For`; default 0: the header is ignored. */
  trustedProxies?: number | undefined;
  /** Default: 10 wrong tokens per minute and address are answered at once. */
  limiter?: FailureLimiter | undefined;
}

/** Creates the console's app, which does not listen yet. A request passes the handlers in the order of these lines. */
export function createApp(options: AppOptions): { app: Express; board: Board } {
  const {
    client,
    store,
    connection,
    logger,
    tokens,
    redact = [],
    refreshEvery,
    trustedProxies = 0,
    limiter = new FailureLimiter(),
  } = options;
  const redactor = new Redactor(redact);
  const board = new Board({ client, store, connection, logger, redactor, refreshEvery });
  const auth = new Auth({ tokens, namespace: client.namespace, store });
  const guard = new Guard({ auth, store, limiter, logger });
  const ui = new Ui("");
  const app = express();
  app.disable("x-powered-by");
  app.set("trust proxy", trustedProxies);
  app.set("query parser", "simple");
  app.set("json replacer", redactor.replacer);

  app.use(securityHeaders);
  app.get("/health", (_req, res) => void res.json({ status: "ok" }));
  app.get("/ready", (_req, res) => {
    const { problem, writeProblem } = board;
    if (problem) res.status(503).json({ status: "unavailable", code: problem.code });
    else if (writeProblem) res.status(503).json({ status: "read-only", code: writeProblem.code });
    else res.json({ status: "ready" });
  });
  app.get("/carillon.svg", (_req, res) => {
    res.set("Cache-Control", KEPT_FOR_AN_HOUR).type("svg").send(LOGO);
  });
  app.get("/login.css", (_req, res) => {
    res.set("Cache-Control", KEPT_FOR_AN_HOUR).type("css").send(LOGIN_STYLE);
  });
  app.get("/assets/:file", ui.asset);

  app.use(sameOrigin);
  app.post("/login", express.urlencoded({ extended: false, limit: "4kb" }), guard.form);
  app.get("/logout", guard.signOut);
  app.use(guard.link, guard.identify, guard.roleAllows, guard.audit);

  app.use(API_PATH, apiRouter(store, redactor));
  app.get(PAGE_PATHS, ui.page);
  app.use(`${BOARD_PATH}/api`, (_req, res, next) => {
    const { problem } = board;
    if (problem) refuse(res, problem);
    else next();
  });
  app.use(BOARD_PATH, (req, res, next) => {
    const { name, role } = identityOf(res);
    author.run(name, () => board.router(role)(req, res, next));
  });
  app.use(() => {
    throw new RequestError(404, "this path does not exist.", { field: "path" });
  });
  app.use(errorHandler(logger));
  return { app, board };
}
