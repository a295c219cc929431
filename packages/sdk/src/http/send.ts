import type { LookupAddress } from "node:dns";
import { Agent, type IncomingMessage, request as plainRequest } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { CarillonError } from "@carillon/core";
import { assertWhole } from "@carillon/core/internal";
import { HttpError } from "./errors.js";
import { bareHost, type Guard, portOf } from "./guard.js";
import { DEFAULT_RESPONSE_BYTES, DEFAULT_TIMEOUT, MAX_RESPONSE_BYTES, MAX_TIMEOUT } from "./limits.js";
import { httpUrl } from "./payload.js";
import { signBody } from "./signature.js";
import { SIGNATURE_HEADER } from "./signature-parts.js";

export interface SignedRequest {
  method: string;
  url: string;
  /** Sent unchanged, so untrusted ones must have been checked. */
  headers: Readonly<Record<string, string>>;
  body?: string | undefined;
  /** Signing keys; without them the request is unsigned. */
  keys?: readonly string[] | undefined;
  /** For the whole exchange, in ms; 1 to 3,600,000, default 30,000. */
  timeout?: number | undefined;
  /** Limit for reading the response body, in bytes; the connection is closed after that. At most 1 MiB, default 65,536. */
  maxResponseBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** PEM; trusted instead of Node's own authorities. */
  ca?: string | undefined;
}

export interface HttpResponse {
  status: number;
  headers: IncomingMessage["headers"];
  /** Read as UTF-8. */
  body: string;
  /** The body was truncated. */
  cut: boolean;
  /** From the name's lookup to the answer's end. */
  durationMs: number;
}

// An agent of our own: the global ones can be replaced, and newer versions of Node configure them with the
// environment's proxy.
const AGENT = new Agent({ keepAlive: false });
const SECURE_AGENT = new SecureAgent({ keepAlive: false, maxCachedSessions: 0 });

/**
 * Sends one request to an address that the guard has passed, signed where there are keys. Follows no redirect, uses no
 * proxy, keeps no connection.
 *
 * @throws `INVALID_OPTION`, `INVALID_PAYLOAD` (the URL), `FORBIDDEN` (the guard), `HTTP_TIMEOUT`, `HTTP_UNREACHABLE`,
 * `HTTP_ABORTED`
 */
export async function sendSigned(request: SignedRequest, guard: Guard): Promise<HttpResponse> {
  const { timeout = DEFAULT_TIMEOUT, maxResponseBytes = DEFAULT_RESPONSE_BYTES } = request;
  assertWhole(timeout, "timeout", 1, MAX_TIMEOUT);
  assertWhole(maxResponseBytes, "maxResponseBytes", 0, MAX_RESPONSE_BYTES);
  const url = httpUrl(request.url);
  const end = new AbortController();
  const giveUp = () => end.abort(new HttpError("HTTP_ABORTED", `The request to ${url.host} was aborted.`));
  const late = () =>
    end.abort(new HttpError("HTTP_TIMEOUT", `${url.host} did not answer within ${timeout} ms.`));
  const timer = setTimeout(late, timeout);
  request.signal?.addEventListener("abort", giveUp, { once: true });
  if (request.signal?.aborted) giveUp();
  const begun = performance.now();
  try {
    const addresses = await unlessAborted(guard(url), end.signal);
    const response = await exchange({ ...request, maxResponseBytes }, url, addresses, end.signal);
    return { ...response, durationMs: Math.round(performance.now() - begun) };
  } catch (error) {
    if (end.signal.aborted) throw end.signal.reason;
    if (error instanceof CarillonError || error instanceof HttpError) throw error;
    throw new HttpError("HTTP_UNREACHABLE", `${url.host} could not be reached (${codeOf(error)}).`);
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener("abort", giveUp);
  }
}

function exchange(
  request: SignedRequest & { maxResponseBytes: number },
  url: URL,
  addresses: readonly LookupAddress[],
  signal: AbortSignal,
): Promise<Omit<HttpResponse, "durationMs">> {
  const secure = url.protocol === "https:";
  const host = bareHost(url);
  const { body = "", keys = [] } = request;
  const headers: Record<string, string | number> = {
    ...request.headers,
    Host: url.host,
    "Accept-Encoding": "identity",
    ...(keys.length > 0 ? { [SIGNATURE_HEADER]: signBody(body, keys) } : {}),
    ...(request.method === "GET" || request.method === "HEAD"
      ? {}
      : { "Content-Length": Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const call = (secure ? secureRequest : plainRequest)({
      agent: secure ? SECURE_AGENT : AGENT,
      method: request.method,
      host,
      port: portOf(url),
      path: `${url.pathname}${url.search}`,
      headers,
      lookup: always(addresses),
      signal,
      // An IP address has no server name; its certificate is checked nevertheless.
      ...(secure ? { servername: isIP(host) === 0 ? host : "", rejectUnauthorized: true } : {}),
      ...(request.ca === undefined ? {} : { ca: request.ca }),
    });
    let answered = false;
    call.once("response", (response) => {
      answered = true;
      read(response, request.maxResponseBytes).then(resolve, reject);
    });
    call.on("error", reject);
    // If a server switches protocols unasked, Node closes the connection without an error.
    call.once("close", () => answered || reject(new Error("closed without an answer")));
    call.end(body);
  });
}

/**
 * A lookup with one fixed answer: the connection goes to the checked address, even if the name resolves to another one
 * by now.
 */
function always(addresses: readonly LookupAddress[]): LookupFunction {
  return (_hostname, options, done) => {
    const [first] = addresses;
    if (options.all) done(null, [...addresses]);
    else done(null, first?.address ?? "", first?.family);
  };
}

async function read(response: IncomingMessage, max: number): Promise<Omit<HttpResponse, "durationMs">> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk.subarray(0, max - size));
    size += chunk.length;
    // Leaving the loop destroys the response, and the connection with it.
    if (size > max) break;
  }
  const cut = size > max;
  return {
    status: response.statusCode as number,
    headers: response.headers,
    // With `stream`, an incomplete character at the end is left out.
    body: new TextDecoder().decode(Buffer.concat(chunks), { stream: cut }),
    cut,
  };
}

/** A lookup cannot be stopped; its result is ignored. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    promise.then(resolve, reject);
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
  });
}

/** Keeps only the code: network messages hold addresses, parser messages hold received data. */
function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "no answer";
}
