import { CarillonError } from "@carillon/sdk";
import type { Request, RequestHandler } from "express";
import { refuse } from "./errors.js";
import { isRead } from "./paths.js";

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  // Bull Board styles elements from script, and adds its theme as a style element.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

export const securityHeaders: RequestHandler = (req, res, next) => {
  res.set({
    "Content-Security-Policy": CSP,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    // Not "no-referrer": with it browsers send `Origin: null` with our own login form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": isStatic(req) ? "private, max-age=3600" : "no-store",
  });
  next();
};

function isStatic(req: Request): boolean {
  return req.path.startsWith("/queues/static/") || req.path === "/carillon.svg";
}

/** A write from another site is refused before anybody asks who it is. Programs send no Origin, browsers always do. */
export const sameOrigin: RequestHandler = (req, res, next) => {
  const origin = req.get("origin");
  if (isRead(req) || origin === undefined || isOurs(origin, req)) return next();
  refuse(res, new CarillonError("FORBIDDEN", "this request comes from another site.", { field: "Origin" }));
};

function isOurs(origin: string, req: Request): boolean {
  let host: string;
  try {
    host = new URL(origin).host;
  } catch {
    return false; // "null" too
  }
  // Behind a proxy the name that the browser used is in X-Forwarded-Host; no page of another site can set that.
  return [req.get("host"), req.get("x-forwarded-host")].some((own) => own?.toLowerCase() === host);
}
