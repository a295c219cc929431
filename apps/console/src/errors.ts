import { CarillonError, type ErrorCode, isCarillonError, type Logger } from "@carillon/sdk";
import { redisError } from "@carillon/sdk/internal";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { stdSerializers } from "pino";
import { type Ctx, json } from "./context.js";
import { errorPage } from "./pages.js";
import { isBoard, wantsPage } from "./paths.js";
import { refusedByBull } from "./refusals.js";

const CODES: Readonly<Record<number, ErrorCode>> = { 412: "CONFLICT", 413: "PAYLOAD_TOO_LARGE" };

/** An error of the HTTP request itself; the status says more than the code. */
export class RequestError extends CarillonError {
  readonly #status: number;

  constructor(status: number, what: string, options: ConstructorParameters<typeof CarillonError>[2]) {
    super(CODES[status] ?? "INVALID_OPTION", what, options);
    this.#status = status;
  }

  override get statusCode(): number {
    return this.#status;
  }
}

/** Headlines that Bull Board's page can translate; other codes are shown unchanged. */
const BOARD_KEYS: Partial<Record<ErrorCode, string>> = {
  TASK_NOT_FOUND: "ERRORS.JOB_SCHEDULER_NOT_FOUND",
  RUN_NOT_FOUND: "ERRORS.JOB_NOT_FOUND",
  FORBIDDEN: "ERRORS.FORBIDDEN",
  INTERNAL: "ERRORS.INTERNAL_SERVER_ERROR",
};

interface BoardErrorBody {
  error: { key: string; code: ErrorCode; message: string; field?: string; remedy?: string };
  /** Bull Board's page shows `error.key` as the headline and this below it. */
  message: string;
}

export function boardErrorBody(error: CarillonError): BoardErrorBody {
  return { error: { key: BOARD_KEYS[error.code] ?? error.code, ...error.toJSON() }, message: error.message };
}

/** Converts any thrown value to an error with a code; errors of Hono, BullMQ and Redis have none. */
export function coded(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  const refused = refusedByBull(error);
  if (refused) return refused;
  const text = error instanceof Error ? error.message : String(error);
  const status = error instanceof URIError ? 400 : (error as { status?: unknown } | null)?.status;
  if (typeof status === "number" && status >= 400 && status < 500)
    return new RequestError(status, `${text}.`, { field: "request", cause: error });
  // The text of a programming error may mention connections too.
  const ofRedis = error instanceof TypeError || isBull(error) ? undefined : redisError(error);
  if (ofRedis && ofRedis.code !== "REDIS_ERROR") return ofRedis;
  return new CarillonError("INTERNAL", text, { cause: error });
}

/**
 * Recognises other errors of BullMQ by number or first word: their texts name jobs, and a job `connector-sync` is not a
 * connection.
 */
function isBull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return typeof (error as { code?: unknown }).code === "number" || error.message.startsWith("Job ");
}

export function unreachable(cause?: unknown): CarillonError {
  return new CarillonError("REDIS_UNAVAILABLE", "Redis cannot be reached.", {
    remedy: "The console tries again by itself; check that Redis runs and that REDIS_URL is right.",
    cause,
  });
}

export function refuse(c: Ctx, error: CarillonError): Response {
  return json(c, isBoard(c) ? boardErrorBody(error) : { error: error.toJSON() }, error.statusCode);
}

/** Logs only message, stack and code of an error: one of ioredis holds its command, and so data of jobs. */
export function logFailure(logger: Logger, thrown: unknown): void {
  const { message, stack, code } = stdSerializers.err(
    thrown instanceof Error ? thrown : new Error(String(thrown)),
  );
  logger.error({ err: Object.assign(new Error(message), { stack, code }) }, "a request failed");
}

/** Answers a request whose handler threw; a browser that asks for a page gets one. */
export function errorHandler(logger: Logger) {
  return (thrown: Error, c: Ctx): Response => {
    const error = coded(thrown);
    if (error.code === "INTERNAL") logFailure(logger, thrown);
    if (!wantsPage(c)) return refuse(c, error);
    const { message, statusCode } = error;
    // The same address is read again, which is safe for a read only.
    const passes = statusCode >= 500 && c.req.method === "GET";
    return c.html(errorPage(c.var.site.basePath, message, passes), statusCode as ContentfulStatusCode);
  };
}

export function notFound(): never {
  throw new RequestError(404, "this path does not exist.", { field: "path" });
}
