import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Readiness } from "@carillon/scheduler";

export interface Endpoints {
  readiness(): Readiness;
  metrics(): Promise<{ type: string; text: string }>;
}

/** Serves `/health`, `/ready`, `/metrics`; resolves when it listens. @throws errors of `listen`, such as EADDRINUSE */
export async function serve(endpoints: Endpoints, host: string, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    answer(endpoints, request, response).catch((error: unknown) => {
      json(response, 500, { error: error instanceof Error ? error.message : String(error) });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return server;
}

export function boundPort(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function answer(
  endpoints: Endpoints,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return json(response, 405, { error: "Only GET." });
  }
  switch (request.url?.split("?")[0]) {
    case "/health":
      return json(response, 200, { status: "ok" });
    case "/ready": {
      const readiness = endpoints.readiness();
      return json(response, readiness.ready ? 200 : 503, readiness);
    }
    case "/metrics": {
      const { type, text } = await endpoints.metrics();
      response.writeHead(200, { "content-type": type }).end(text);
      return;
    }
    default:
      return json(response, 404, { error: "There are /health, /ready and /metrics." });
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}
