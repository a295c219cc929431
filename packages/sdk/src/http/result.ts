import type { HttpResponse } from "./send.js";

/** A run's record keeps 16 KiB of result. Of a larger one it keeps only the size, and the status would be lost. */
const MAX_RESULT_LENGTH = 16_000;
const MAX_HEADER_LENGTH = 512;

/** Never `set-cookie`. */
const HEADERS = [
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "etag",
  "last-modified",
  "location",
  "retry-after",
  "x-request-id",
] as const;

/** The result of an `http.request` run. A type, not an interface: it is JSON. */
export type HttpResult = {
  status: number;
  durationMs: number;
  /**
   * Headers that help to understand the response: content type, length and encoding, dates, etag, location,
   * retry-after, x-request-id.
   */
  headers: Record<string, string>;
  /** Read as UTF-8. */
  body: string;
  /** The body was truncated. */
  cut?: true;
};

export function resultOf(response: HttpResponse): HttpResult {
  const headers: Record<string, string> = {};
  for (const name of HEADERS) {
    const value = response.headers[name];
    if (value !== undefined) headers[name] = String(value).slice(0, MAX_HEADER_LENGTH);
  }
  const { status, durationMs } = response;
  const empty: HttpResult = { status, durationMs, headers, body: "", cut: true };
  const body = fit(response.body, MAX_RESULT_LENGTH - JSON.stringify(empty).length);
  return {
    status,
    durationMs,
    headers,
    body,
    ...(response.cut || body !== response.body ? { cut: true } : {}),
  };
}

/** The beginning of a text whose JSON, without the quotes, is not longer than `room`. */
function fit(text: string, room: number): string {
  const length = JSON.stringify(text).length - 2;
  if (length <= room) return text;
  // Shortens repeatedly: the rest may have more characters that JSON escapes.
  const part = text.slice(0, Math.floor((text.length * room) / length));
  return fit(part.replace(/[\uD800-\uDBFF]$/, ""), room);
}
