import { CarillonError, type Json } from "@carillon/core";
import type { Context } from "../context.js";
import { PermanentError } from "../permanent-error.js";
import { defineTask, type TaskType } from "../task-type.js";
import { traceparentOf } from "../telemetry.js";
import { HttpError } from "./errors.js";
import { checked, type HttpRequestOptions, type HttpSettings } from "./options.js";
import {
  boundedTimeout,
  HTTP_TYPE,
  type HttpPayloadSchema,
  type HttpRequestSpec,
  httpPayloadSchema,
} from "./payload.js";
import { type HttpResult, resultOf } from "./result.js";
import { type HttpResponse, sendSigned } from "./send.js";
import { matchesStatus } from "./status.js";

/**
 * The task type `http.request`: a task is a stored HTTP request. It reaches public addresses only, but for what `allow` names.
 * Its result is an {@link HttpResult}.
 *
 * @example
 * const http = httpRequest({ signingKey: process.env.CARILLON_SIGNING_KEY! });
 * await client.put(http, { id: "ping", schedule: { every: "5m" }, payload: { url: "https://example.com/health" } });
 * const worker = new Worker({ connection, types: [http] });
 * @throws `INVALID_OPTION`, `INVALID_NAME` (the queue)
 */
export function httpRequest(options: HttpRequestOptions = {}): TaskType<HttpPayloadSchema> {
  const settings = checked(options);
  return defineTask(HTTP_TYPE, {
    queue: settings.queue,
    payload: httpPayloadSchema,
    handler: (payload, context) => perform(payload, context, settings),
  });
}

/** Sends the request and judges the answer. */
export async function perform(
  spec: HttpRequestSpec,
  context: Context,
  settings: HttpSettings,
): Promise<HttpResult> {
  const response = await send(spec, context, settings);
  const { status, durationMs } = response;
  const { host } = new URL(spec.url);
  context.log("answered", { method: spec.method, host, status, durationMs });
  if (matchesStatus(spec.expectStatus, status)) return resultOf(response);
  throw unexpected(host, response, settings);
}

/** The error of a status that was not expected. */
export function unexpected(host: string, response: HttpResponse, settings: HttpSettings): Error {
  const { status } = response;
  const message = `${host} answered ${status}.${hintFor(status)}`;
  const error = new HttpError("HTTP_STATUS", message, status, retryAfter(response));
  return matchesStatus(settings.permanentStatuses, status) ? permanent(error) : error;
}

export async function send(
  spec: HttpRequestSpec,
  context: Context,
  settings: HttpSettings,
): Promise<HttpResponse> {
  const { occurrence, fence, signal } = context;
  const traceparent = traceparentOf(occurrence);
  try {
    return await sendSigned(
      {
        method: spec.method,
        url: spec.url,
        // Names differ in case: a later one replaces an earlier one.
        headers: {
          "User-Agent": settings.userAgent,
          ...(traceparent === undefined ? {} : { traceparent }),
          ...(spec.body === undefined ? {} : { "Content-Type": contentType(spec.body) }),
          ...spec.headers,
          "Idempotency-Key": context.idempotencyKey,
          "Carillon-Task": `${occurrence.owner}/${occurrence.task}`,
          "Carillon-Run": occurrence.run,
          "Carillon-Fence": String(fence),
        },
        body: textOf(spec.body),
        keys: settings.keysFor(occurrence, new URL(spec.url)),
        timeout: spec.timeout === undefined ? settings.timeout : boundedTimeout(spec.timeout),
        maxResponseBytes: settings.maxResponseBytes,
        signal,
        ca: settings.ca,
      },
      settings.guard,
    );
  } catch (error) {
    // A retry would be refused again.
    throw error instanceof CarillonError ? permanent(error) : error;
  }
}

/** The header `Retry-After`, in ms: seconds, or a date of the receiver's clock. */
function retryAfter({ headers }: HttpResponse): number | undefined {
  const { "retry-after": given = "", date = "" } = headers;
  const ms = /^\d+$/.test(given)
    ? Number(given) * 1_000
    : Date.parse(given) - (Date.parse(date) || Date.now());
  return ms > 0 ? ms : undefined;
}

function textOf(body: Json | undefined): string | undefined {
  return body === undefined || typeof body === "string" ? body : JSON.stringify(body);
}

function contentType(body: Json): string {
  return typeof body === "string" ? "text/plain; charset=utf-8" : "application/json";
}

function hintFor(status: number): string {
  return status >= 300 && status < 400 ? " Redirects are not followed: give the final URL." : "";
}

function permanent(error: CarillonError | HttpError): PermanentError {
  return Object.assign(new PermanentError(error.message, { cause: error }), { code: error.code });
}
