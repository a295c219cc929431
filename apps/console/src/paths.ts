import { rightsAt } from "@carillon/ops/internal";
import type { Ctx } from "./context.js";
import { MOVED, PAGE_PATHS } from "./page-paths.js";

export const BOARD_PATH = "/queues";
export const API_PATH = "/api/v1";

/** Paths that the console answers itself: a base path must differ from them, so that the two can be distinguished. */
export const OWN_PATHS = [
  "/api",
  API_PATH,
  BOARD_PATH,
  `${BOARD_PATH}/api`,
  "/assets",
  "/login",
  "/logout",
  "/health",
  "/ready",
  ...PAGE_PATHS,
  ...Object.keys(MOVED),
];

/** Bull Board's page, its calls, or its files. */
export function isBoard({ req }: Ctx): boolean {
  return req.path === BOARD_PATH || req.path.startsWith(`${BOARD_PATH}/`);
}

/** Whether it is a path of our API, in any case of letters. */
export function isApi({ req }: Ctx): boolean {
  return /^\/api(\/|$)/i.test(req.path);
}

/** Whether programs call it, so that errors must not be pages. */
function isForPrograms(c: Ctx): boolean {
  return isApi(c) || /^\/queues\/api(\/|$)/.test(c.req.path);
}

/** Whether a browser asks for a page. */
export function wantsPage(c: Ctx): boolean {
  return !isForPrograms(c) && (c.req.header("accept") ?? "").includes("text/html");
}

export function isRead({ req }: Ctx): boolean {
  return req.method === "GET" || req.method === "HEAD";
}

/** Whether it changes nothing: a viewer may call it. A query that needs a body is a POST. */
export function onlyAsks(c: Ctx): boolean {
  const { method, path } = c.req;
  if (isRead(c)) return true;
  return isApi(c) && rightsAt(method, path.slice(API_PATH.length))?.role === "viewer";
}

/**
 * Calls of Bull Board that act on existing jobs and queues, but do not define, edit or remove any. A name may be any part of a
 * path, except a job id `clean`, which is another route of the board.
 */
const ACTS: readonly RegExp[] = [
  /^PUT \/queues\/api\/queues\/(pause|resume)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(pause|resume|promote)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/retry\/[^/]+$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(?!clean\/)[^/]+\/(retry|promote)$/i,
  /^PUT \/queues\/api\/queues\/[^/]+\/job-schedulers\/[^/]+\/run$/,
];

/** Whether it pauses, resumes, runs, retries or promotes. */
export function onlyActs({ req }: Ctx): boolean {
  const asked = `${req.method} ${req.path}`;
  return ACTS.some((path) => path.test(asked));
}

/**
 * Paths for tokens that are bound to owners. The API answers them with a client that is bound to one of these owners,
 * which hides the tasks of others. All other paths concern the whole namespace.
 */
const OWNED: readonly RegExp[] = [
  /^\/api\/v1\/(events|me|openapi\.json)$/,
  ...PAGE_PATHS.map((path) => new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`)),
];

/** Whether a token that is bound to owners may ask for it. The page of an unknown address holds no data. */
export function isOwned(c: Ctx): boolean {
  return OWNED.some((path) => path.test(c.req.path)) || (wantsPage(c) && !isBoard(c));
}
