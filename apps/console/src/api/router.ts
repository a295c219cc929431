import type { Client } from "@carillon/sdk";
import { Router } from "express";
import type { Redactor } from "../redact.js";
import { backfillEndpoints } from "./backfills.js";
import { calendarEndpoints } from "./calendars.js";
import { insightEndpoints } from "./insight.js";
import { journalEndpoint } from "./journal.js";
import { manyEndpoints } from "./many.js";
import { namespaceEndpoints } from "./namespace.js";
import { route } from "./route.js";
import { runEndpoints } from "./runs.js";
import { taskEndpoints } from "./tasks.js";
import { validateEndpoint } from "./validate.js";
import { verbEndpoints } from "./verbs.js";

/** The HTTP API: every path that there is. Who may come in has been settled before. */
export function apiRouter(client: Client, redactor: Redactor): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const tasks = taskEndpoints(client, redactor);
  const verbs = verbEndpoints(client);
  const many = manyEndpoints(client);
  const runs = runEndpoints(client);
  const insight = insightEndpoints(client);
  const backfills = backfillEndpoints(client);
  const calendars = calendarEndpoints(client);
  const namespace = namespaceEndpoints(client);
  const task = "/tasks/:queue/:owner/:id";

  route(router, "/tasks", { get: tasks.list, post: tasks.add });
  route(router, "/tasks/pause", { post: many.pause });
  route(router, "/tasks/resume", { post: many.resume });
  route(router, "/tasks/delete", { post: many.remove });
  route(router, task, { get: tasks.get, put: tasks.put, delete: tasks.remove });
  route(router, `${task}/pause`, { post: verbs.pause });
  route(router, `${task}/resume`, { post: verbs.resume });
  route(router, `${task}/trigger`, { post: verbs.trigger });
  route(router, `${task}/runs`, { get: verbs.runs });
  route(router, `${task}/ledger`, { get: verbs.ledger });
  route(router, `${task}/stats`, { get: insight.stats });
  route(router, `${task}/explain`, { get: insight.explain });
  route(router, `${task}/backfills`, { post: backfills.add });
  route(router, "/backfills/:id", { get: backfills.get, delete: backfills.cancel });
  route(router, "/runs/:id", { get: runs.get });
  route(router, "/runs/:id/cancel", { post: runs.cancel });
  route(router, "/upcoming", { get: insight.upcoming });
  route(router, "/forecast", { get: insight.forecast });
  route(router, "/validate", { post: validateEndpoint(client, redactor) });
  route(router, "/journal", { get: journalEndpoint(client) });
  route(router, "/nodes", { get: namespace.nodes });
  route(router, "/queues", { get: namespace.queues });
  route(router, "/types", { get: namespace.types, put: namespace.allowTypes });
  route(router, "/calendars", { get: calendars.list });
  route(router, "/calendars/:name", { get: calendars.get, put: calendars.put, delete: calendars.remove });
  return router;
}
