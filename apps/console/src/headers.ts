import { CarillonError } from "@carillon/sdk";
import type { Ctx, Middleware } from "./context.js";
import { refuse } from "./errors.js";
import { isBoard, isRead } from "./paths.js";

const csp = (style: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self'${style}`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
const CSP = csp("");
/** Bull Board styles elements from script, and adds its theme as a style element. */
const BOARD_CSP = csp(" 'unsafe-inline'");

/** `Cache-Control` of files. Not for refusals and 404s, because the file may exist after the next sign-in or upgrade. */
export const KEPT_FOR_AN_HOUR = "private, max-age=3600";

/** `Cache-Control` of files whose names contain a hash of them. */
export const KEPT_FOR_EVER = "private, max-age=31536000, immutable";

const HEADERS = Object.entries({
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  // Not "no-referrer", with which browsers send `Origin: null` with our own login form.
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
});

export const securityHeaders: Middleware = async (c, next) => {
  await next();
  const { headers } = c.res;
  headers.set("Content-Security-Policy", isBoard(c) ? BOARD_CSP : CSP);
  for (const [name, value] of HEADERS) headers.set(name, value);
  if (!headers.has("Cache-Control")) headers.set("Cache-Control", "no-store");
};

/** Refuses writes from other sites before authentication. Programs send no Origin, browsers always do. */
export const sameOrigin: Middleware = async (c, next) => {
  const origin = c.req.header("origin");
  if (isRead(c) || origin === undefined || isOurs(origin, c)) return next();
  return refuse(
    c,
    new CarillonError("FORBIDDEN", "this request comes from another site.", { field: "Origin" }),
  );
};

function isOurs(origin: string, { req }: Ctx): boolean {
  const from = urlOf(origin);
  if (!from?.host) return false; // "null" too, and "file://"
  // Behind a proxy the name that the browser used is in X-Forwarded-Host, behind several proxies it is the first one; pages of other
  // sites cannot set this header.
  const [forwarded] = (req.header("x-forwarded-host") ?? "").split(",");
  return [req.header("host") ?? new URL(req.url).host, forwarded].some(
    // Normalised as the browser writes an origin: in lower case, without the default port, which proxies may add.
    (own) => own !== undefined && urlOf(`${from.protocol}//${own.trim()}`)?.host === from.host,
  );
}

function urlOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
