import { Client } from "@carillon/sdk";
import express, { type Express } from "express";
import type { Logger } from "pino";
import { apiRouter } from "./api/router.js";
import { Auth, FailureLimiter } from "./auth.js";
import { Board, type Connection } from "./board.js";
import { errorHandler, RequestError, refuse } from "./errors.js";
import { Guard, identityOf } from "./guard.js";
import { KEPT_FOR_AN_HOUR, sameOrigin, securityHeaders } from "./headers.js";
import { LOGO } from "./pages.js";
import { API_PATH, BOARD_PATH } from "./paths.js";
import { Redactor } from "./redact.js";

export interface AppOptions {
  client: Client;
  /** For BullMQ's queues; `connect(spec, "safe")`. Stays the caller's to close. */
  connection: Connection;
  logger: Logger;
  token: string;
  operatorToken?: string | undefined;
  viewerToken?: string | undefined;
  /** Fields of payloads whose values nobody sees; default none. */
  redact?: readonly string[] | undefined;
  /** How often the list of queues is read, in ms; default 3,000. */
  refreshEvery?: number | undefined;
  /** Default: 10 failures a minute from one address. */
  limiter?: FailureLimiter | undefined;
}

/** The console without its listening: the order of these lines is the order in which a request meets them. */
export function createApp(options: AppOptions): { app: Express; board: Board } {
  const {
    client,
    connection,
    logger,
    token,
    operatorToken,
    viewerToken,
    redact = [],
    refreshEvery,
    limiter = new FailureLimiter(),
  } = options;
  const redactor = new Redactor(redact);
  const board = new Board({ client, connection, logger, redactor, refreshEvery });
  const auth = new Auth({ token, operatorToken, viewerToken, namespace: client.namespace });
  const guard = new Guard({ auth, limiter, logger });
  const app = express();
  app.disable("x-powered-by");
  app.set("query parser", "simple");
  app.set("json replacer", redactor.replacer);

  app.use(securityHeaders);
  app.get("/health", (_req, res) => void res.json({ status: "ok" }));
  app.get("/ready", (_req, res) => {
    const { problem } = board;
    if (problem) res.status(503).json({ status: "unavailable", code: problem.code });
    else res.json({ status: "ready" });
  });
  app.get("/carillon.svg", (_req, res) => {
    res.set("Cache-Control", KEPT_FOR_AN_HOUR).type("svg").send(LOGO);
  });

  app.use(sameOrigin);
  app.post("/login", express.urlencoded({ extended: false, limit: "4kb" }), guard.form);
  app.get("/logout", guard.signOut);
  app.use(guard.link, guard.identify, guard.roleAllows, guard.audit);

  // A client of its own: what is sent to it has the payload limit of every client.
  app.use(API_PATH, apiRouter(new Client({ store: client.store }), redactor));
  app.get("/", (_req, res) => res.redirect(303, `${BOARD_PATH}/`));
  app.use(`${BOARD_PATH}/api`, (_req, res, next) => {
    const { problem } = board;
    if (problem) refuse(res, problem);
    else next();
  });
  app.use(BOARD_PATH, (req, res, next) => board.router(identityOf(res).role)(req, res, next));
  app.use(() => {
    throw new RequestError(404, "there is nothing at this address.", { field: "path" });
  });
  app.use(errorHandler(logger));
  return { app, board };
}
