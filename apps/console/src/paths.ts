import type { Request } from "express";

export const BOARD_PATH = "/queues";
export const API_PATH = "/api/v1";

/** Of the whole address, also inside of a router. */
function pathOf(req: Request): string {
  return req.baseUrl + req.path;
}

/** A call by Bull Board's page, or one of its files. */
export function isBoard(req: Request): boolean {
  return pathOf(req).startsWith(`${BOARD_PATH}/`);
}

/** Ours, for programs; in any case of letters, as Express finds it. */
export function isApi(req: Request): boolean {
  return /^\/api(\/|$)/i.test(pathOf(req));
}

/** A page is of no use to whoever calls this. */
export function isForPrograms(req: Request): boolean {
  return isApi(req) || /^\/queues\/api(\/|$)/.test(pathOf(req));
}

export function isRead(req: Request): boolean {
  return req.method === "GET" || req.method === "HEAD";
}

/** It changes nothing; a question that needs a body is a POST. */
export function onlyAsks(req: Request): boolean {
  return isRead(req) || (req.method === "POST" && pathOf(req) === `${API_PATH}/validate`);
}

/**
 * What acts on what there is, and defines, edits or removes none of it. Names are any part of a path; a job whose id is
 * `clean` is not among them, for that is another route of the board.
 */
const ACTS: readonly RegExp[] = [
  /^POST \/api\/v1\/tasks\/(pause|resume)$/,
  /^POST \/api\/v1\/tasks(\/[^/]+){3}\/(pause|resume|trigger|backfills)$/,
  /^DELETE \/api\/v1\/backfills\/[^/]+$/,
  /^POST \/api\/v1\/runs\/[^/]+\/cancel$/,
  /^PUT \/queues\/api\/queues\/(pause|resume)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(pause|resume|promote)$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/retry\/[^/]+$/,
  /^PUT \/queues\/api\/queues\/[^/]+\/(?!clean\/)[^/]+\/(retry|promote)$/i,
  /^PUT \/queues\/api\/queues\/[^/]+\/job-schedulers\/[^/]+\/run$/,
];

/** It triggers, pauses, resumes, cancels, retries or backfills. */
export function onlyActs(req: Request): boolean {
  const asked = `${req.method} ${pathOf(req)}`;
  return ACTS.some((path) => path.test(asked));
}
