import { quote } from "@carillon/core/internal";

const MAX_COUNT = 64;
/** Limit for all names and values together; most servers accept 8 to 16 KiB. */
const MAX_LENGTH = 8 * 1024;

const NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Printable ASCII and tabs: no CR, no LF, nothing that two programs could read differently. */
const VALUE = /^[\t\x20-\x7e]*$/;

/** Headers of the connection, and headers that Carillon sets itself. */
const REFUSED = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "http2-settings",
  "idempotency-key",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const REFUSED_PREFIX = /^(?:proxy-|carillon-)/;

/** The first problem of untrusted headers, without their values; `undefined` if they are valid. */
export function headersFault(headers: Readonly<Record<string, unknown>>): string | undefined {
  const names = Object.keys(headers);
  if (names.length > MAX_COUNT) return `more than ${MAX_COUNT} headers`;
  const seen = new Set<string>();
  let length = 0;
  for (const name of names) {
    const value = headers[name];
    const lower = name.toLowerCase();
    const quoted = quote(name, 40);
    if (!NAME.test(name) || lower === "__proto__") return `${quoted} is not a header name`;
    if (REFUSED.has(lower) || REFUSED_PREFIX.test(lower)) return `${quoted} is not for a task to set`;
    if (seen.has(lower)) return `${quoted} is given twice`;
    if (typeof value !== "string" || !VALUE.test(value))
      return `the value of ${quoted} is not printable ASCII`;
    seen.add(lower);
    length += name.length + value.length;
  }
  return length > MAX_LENGTH ? `more than ${MAX_LENGTH} characters of headers` : undefined;
}
