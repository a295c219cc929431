import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Env } from "./context.js";
import { RequestError } from "./errors.js";

type Fetch = (request: Request, env: Env["Bindings"]) => Response | Promise<Response>;

/** A handler of Node's HTTP server, and of Express, for a function that answers requests. */
export function nodeHandler(fetch: Fetch): (req: IncomingMessage, res: ServerResponse) => Promise<void> {
  const answer = (request: Request, env: object) => fetch(request, { ...env, compresses: true });
  return getRequestListener(answer, {
    // For requests without a Host, such as those of HTTP/1.0.
    hostname: "localhost",
    overrideGlobalObjects: false,
    errorHandler: unreadable,
  });
}

/** Answers a request whose Host or path does not form a URL; `fetch` answers all other errors. */
function unreadable(cause: unknown): Response {
  const error = new RequestError(400, "Host or path are not valid.", { field: "request", cause });
  return Response.json({ error: error.toJSON() }, { status: error.statusCode });
}

export interface ServerLimits {
  /** Time in ms that a request may take to arrive, its body included; default 30 s. */
  requestMs?: number;
  /** Interval in ms at which that is checked; default 5 s. */
  checkMs?: number;
  /**
   * Most open connections; default 1,000, so that some of the usual 1,024 open files are left. Further ones are closed.
   */
  connections?: number;
}

/** The console's HTTP server. Clients that send slowly, or nothing, cannot hold its connections for ever. */
export function consoleServer(
  app: RequestListener,
  { requestMs = 30_000, checkMs = 5_000, connections = 1_000 }: ServerLimits = {},
): Server {
  const times = {
    requestTimeout: requestMs,
    headersTimeout: requestMs,
    connectionsCheckingInterval: checkMs,
  };
  const server = createServer(times, app);
  server.maxConnections = connections;
  return server;
}
