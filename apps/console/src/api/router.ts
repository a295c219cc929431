import type { Store } from "@carillon/sdk/internal";
import { Hono } from "hono";
import type { Env } from "../context.js";
import type { Redactor } from "../redact.js";
import { clientsOf } from "./clients.js";
import { eventsEndpoint } from "./events.js";
import { inTurn } from "./in-turn.js";
import { insightEndpoints as insight } from "./insight.js";
import { journalEndpoint } from "./journal.js";
import { namespaceEndpoints as namespace } from "./namespace.js";
import { openApiEndpoint } from "./openapi.js";
import { operationRoutes } from "./operations.js";
import { route } from "./route.js";
import { runEndpoints as runs } from "./runs.js";
import { taskEndpoints } from "./tasks.js";
import { validateEndpoint } from "./validate.js";
import { verbEndpoints } from "./verbs.js";

/** The HTTP API with all its paths. Requests are authorised before they get here. */
export function apiRouter(store: Store, redactor: Redactor): Hono<Env> {
  const router = new Hono<Env>();
  const tasks = taskEndpoints(redactor);
  const verbs = verbEndpoints(redactor);
  const task = "/tasks/:queue/:owner/:id";
  const turn = inTurn();

  router.use(clientsOf(store));
  // First, because `/runs/:id` would take `/runs/cancel`.
  operationRoutes(router, turn);
  route(router, "/openapi.json", { get: openApiEndpoint(router) });
  route(router, "/me", { get: namespace.me });
  route(router, "/tasks", { get: tasks.list, post: tasks.add });
  route(router, "/tasks/counts", { get: tasks.counts });
  route(router, task, { get: tasks.get, put: tasks.put, delete: tasks.remove });
  route(router, `${task}/pause`, { post: verbs.pause });
  route(router, `${task}/resume`, { post: verbs.resume });
  route(router, `${task}/move`, { post: verbs.move });
  route(router, `${task}/trigger`, { post: verbs.trigger });
  route(router, `${task}/runs`, { get: verbs.runs });
  route(router, `${task}/revisions`, { get: tasks.revisions });
  route(router, `${task}/restore`, { post: tasks.restore });
  route(router, `${task}/ledger`, { get: verbs.ledger });
  route(router, `${task}/stats`, { get: insight.stats });
  route(router, "/runs", { get: runs.list });
  route(router, "/runs/summary", { get: runs.summary });
  route(router, "/runs/:id", { get: runs.get });
  route(router, "/runs/:id/items", { get: runs.items });
  route(router, "/runs/:id/retry-items", { post: runs.retryItems });
  route(router, "/runs/:id/cancel", { post: runs.cancel });
  route(router, "/stats", { get: insight.statsOfAll });
  route(router, "/validate", { post: turn(validateEndpoint(store, redactor)) });
  route(router, "/journal", { get: journalEndpoint });
  route(router, "/status", { get: namespace.status });
  route(router, "/doctor", { get: turn(namespace.doctor) });
  route(router, "/events", { get: eventsEndpoint() });
  return router;
}
