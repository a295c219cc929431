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
