import { createServer, type RequestListener, type Server } from "node:http";

export interface ServerLimits {
  /** How long a request may take to arrive, its body included, in ms; default 30 s. */
  requestMs?: number;
  /** How often that is checked, in ms; default 5 s. */
  checkMs?: number;
  /** Connections open at once; default 1,000, so that some of the usual 1,024 open files are left. Further ones are closed. */
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
