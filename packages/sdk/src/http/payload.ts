import { CarillonError, type Duration, type Json, parseDuration } from "@carillon/core";
import { encodePayload } from "@carillon/core/internal";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { headersFault } from "./headers.js";
import { MAX_TIMEOUT } from "./limits.js";
import { type Statuses, statusesSchema } from "./status.js";

/** The type of HTTP tasks. */
export const HTTP_TYPE = "http.request";
const MAX_URL_LENGTH = 2_048;
const MAX_BODY = { maxBytes: 256 * 1024, maxDepth: 64 };

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
export type HttpMethod = (typeof METHODS)[number];

/** The payload of an `http.request` task. */
export interface HttpRequestPayload {
  /** Default `GET`. */
  method?: HttpMethod | undefined;
  /** `http:` or `https:`, without user name and password; at most 2,048 characters. */
  url: string;
  /** At most 64, 8 KiB together. Not those of the connection, nor those that Carillon sets. */
  headers?: Record<string, string> | undefined;
  /** Text is sent as it is, anything else as JSON; at most 256 KiB. Not allowed with `GET` and `HEAD`. */
  body?: Json | undefined;
  /** `200`, `"2xx"`, `["2xx", 404]`; default `"2xx"`. */
  expectStatus?: Statuses | undefined;
  /**
   * Timeout of the whole exchange, from the DNS lookup to the end of the response: `10s`, or milliseconds; at most `1h`;
   * default the task type's.
   */
  timeout?: Duration | undefined;
}

/** A payload that passed. */
export interface HttpRequestSpec extends HttpRequestPayload {
  method: HttpMethod;
  headers: Record<string, string>;
  expectStatus: Statuses;
}

export type HttpPayloadSchema = StandardSchemaV1<HttpRequestPayload, HttpRequestSpec>;

/** A zod check out of a function that gives the fault or throws a coded error. */
function checked<T>(fault: (value: T) => string | undefined | void) {
  return (value: T, context: z.core.$RefinementCtx<T>) => {
    const message = faultOf(() => fault(value));
    if (message) context.addIssue({ code: "custom", message });
  };
}

function faultOf(fault: () => string | undefined | void): string | undefined {
  try {
    return fault() ?? undefined;
  } catch (error) {
    if (!(error instanceof CarillonError)) throw error;
    // The caller adds the field name and the full stop.
    const start = error.field === undefined ? 0 : error.field.length + 2;
    return error.message.slice(start).replace(/\.$/, "");
  }
}

const isRecord = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

export const httpPayloadSchema: HttpPayloadSchema = z
  .strictObject({
    method: z.enum(METHODS).default("GET"),
    url: z
      .string()
      .max(MAX_URL_LENGTH)
      .superRefine(checked((text: string) => void httpUrl(text))),
    headers: z
      .custom<Record<string, string>>(isRecord, "must be an object of names and values")
      .superRefine(checked(headersFault))
      .default({}),
    body: z
      .custom<Json>((value) => value !== undefined)
      .superRefine(checked((value: Json) => void encodePayload(value, MAX_BODY)))
      .optional(),
    expectStatus: statusesSchema.default("2xx"),
    timeout: z
      .union([z.string(), z.number()])
      .superRefine(checked((timeout: Duration) => void boundedTimeout(timeout)))
      .optional(),
  })
  .refine(({ method, body }) => body === undefined || (method !== "GET" && method !== "HEAD"), {
    path: ["body"],
    message: "GET and HEAD have none",
  });

/** A URL that a request may be sent to, as far as its text tells. @throws `INVALID_PAYLOAD`, never with the URL in it */
export function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new CarillonError("INVALID_PAYLOAD", "not an http or https URL.");
  }
  if (url.username !== "" || url.password !== "") {
    throw new CarillonError("INVALID_PAYLOAD", "holds a user name or password.", {
      remedy: "Send them in an Authorization header.",
    });
  }
  return url;
}

/** Milliseconds of a timeout. @throws `INVALID_DURATION` */
export function boundedTimeout(text: Duration, field?: string): number {
  const ms = parseDuration(text, field);
  if (ms <= MAX_TIMEOUT) return ms;
  throw new CarillonError("INVALID_DURATION", "longer than an hour.", {
    ...(field === undefined ? {} : { field }),
    remedy: "Use at most 1h.",
  });
}
