import type { Redactor } from "@carillon/ops/internal";
import type { Store } from "@carillon/sdk/internal";
import { Hono } from "hono";
import type { Env } from "../context.js";
import { clientsOf } from "./clients.js";
import { eventsEndpoint } from "./events.js";
import { namespaceEndpoints as namespace } from "./namespace.js";
import { openApiEndpoint } from "./openapi.js";
import { operationRoutes } from "./operations.js";
import { route } from "./route.js";

/** The HTTP API with all its paths. Requests are authorised before they get here. */
export function apiRouter(store: Store, redactor: Redactor): Hono<Env> {
  const router = new Hono<Env>();

  router.use(clientsOf(store));
  operationRoutes(router, redactor);
  route(router, "/openapi.json", { get: openApiEndpoint(router) });
  route(router, "/me", { get: namespace.me });
  route(router, "/events", { get: eventsEndpoint() });
  return router;
}
