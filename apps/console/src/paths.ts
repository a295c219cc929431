import type { Request } from "express";

export const BOARD_PATH = "/queues";
export const API_PATH = "/api/v1";

/** Addresses of the pages, all answered with one document; the page decides what to show. As in `ui/src/pages.ts`. */
export const PAGE_PATHS = [
  "/",
  "/tasks",
  "/tasks/new",
  "/tasks/:queue/:owner/:id",
  "/tasks/:queue/:owner/:id/edit",
  "/timeline",
  "/runs",
  "/runs/:id",
  "/freezes",
  "/resume",
  "/alerts",
  "/system",
  "/calendars",
  "/calendars/:name",
  "/backfills",
  "/changes",
  "/doctor",
];

/** Path of the whole address, also inside a router. */
function pathOf(req: Request): string {
  return req.baseUrl + req.path;
}

/** Bull Board's page, a call by it, or one of its files. */
export function isBoard(req: Request): boolean {
  return pathOf(req) === BOARD_PATH || pathOf(req).startsWith(`${BOARD_PATH}/`);
}

/** Whether it is a path of our API; ignores case, as Express does. */
export function isApi(req: Request): boolean {
  return /^\/api(\/|$)/i.test(pathOf(req));
}

/** Whether programs call it, so that errors must not be pages. */
export function isForPrograms(req: Request): boolean {
  return isApi(req) || /^\/queues\/api(\/|$)/.test(pathOf(req));
}

export function isRead(req: Request): boolean {
  return req.method === "GET" || req.method === "HEAD";
}

/** Whether it changes nothing; a query that needs a body is a POST. */
export function onlyAsks(req: Request): boolean {
  return isRead(req) || (req.method === "POST" && pathOf(req) === `${API_PATH}/validate`);
}

/**
 * Requests that act on existing tasks and jobs, but do not define, edit or remove any. A name may be any part of a path, except a job
 * id `clean`, which is another route of the board.
 */
const ACTS: readonly RegExp[] = [
  /^POST \/api\/v1\/tasks\/(pause|resume|trigger)$/,
  /^POST \/api\/v1\/queues\/[^/]+\/(pause|resume)$/,
  /^POST \/api\/v1\/tasks(\/[^/]+){3}\/(pause|resume|trigger|backfills)$/,
  /^(POST \/api\/v1\/alerts\/(test|silences)|DELETE \/api\/v1\/alerts\/silences\/[^/]+)$/,
  /^(POST \/api\/v1\/freezes|DELETE \/api\/v1\/freezes\/[^/]+)$/,
  /^(POST \/api\/v1\/backfills|DELETE \/api\/v1\/backfills\/[^/]+)$/,
  /^POST \/api\/v1\/runs(\/[^/]+)?\/cancel$/,
  /^POST \/api\/v1\/runs\/[^/]+\/retry-items$/,
  /^PUT \/queues\/api\/queues\/(pause|resume)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(pause|resume|promote)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/retry\/[^/]+$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(?!clean\/)[^/]+\/(retry|promote)$/i,
  /^PUT \/queues\/api\/queues\/[^/]+\/job-schedulers\/[^/]+\/run$/,
];

/** Whether it triggers, pauses, freezes, silences, resumes, cancels, retries or backfills. */
export function onlyActs(req: Request): boolean {
  const asked = `${req.method} ${pathOf(req)}`;
  return ACTS.some((path) => path.test(asked));
}

/** Reads and changes that only an admin may do; ignores case, as Express does where it mounts the API. */
export function isForAdmins(req: Request): boolean {
  return /^\/api\/v1\/tokens(\/|$)/i.test(pathOf(req));
}

/**
 * Paths for tokens that are bound to owners. The API answers them with a client that is bound to one of these owners, which hides the
 * tasks of others. All other paths concern the whole namespace.
 */
const OWNED: readonly RegExp[] = [
  /^\/api\/v1\/tasks(\/(counts|pause|resume|trigger|tag|delete))?$/,
  /^\/api\/v1\/tasks(\/[^/]+){3}$/,
  /^\/api\/v1\/tasks(\/[^/]+){3}\/(pause|resume|move|trigger|runs|revisions|restore|ledger|stats|explain|ticks|backfills)$/,
  /^\/api\/v1\/backfills(\/[^/]+)?$/,
  /^\/api\/v1\/freezes(\/[^/]+)?$/,
  /^\/api\/v1\/alerts(\/undelivered|\/test|\/silences(\/[^/]+)?)?$/,
  /^\/api\/v1\/runs(\/[^/]+(\/(items|retry-items|cancel))?)?$/,
  /^\/api\/v1\/(stats|ticks|upcoming|forecast|validate|journal|status|changes|me|openapi\.json)$/,
  ...PAGE_PATHS.map((path) => new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`)),
];

/** Whether a token that is bound to owners may ask for it. */
export function isOwned(req: Request): boolean {
  return OWNED.some((path) => path.test(pathOf(req)));
}
