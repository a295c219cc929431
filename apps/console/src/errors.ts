import { CarillonError, type ErrorCode, isCarillonError, redisError } from "@carillon/sdk";
import type { NextFunction, Request, Response } from "express";
import { type Logger, stdSerializers } from "pino";
import { isBoard } from "./paths.js";
import { refusedByBull } from "./refusals.js";

/** Beside these: what begins with `INVALID_` is a 400, with `REDIS_` a 503, and what ends with `_NOT_FOUND` a 404. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  PAYLOAD_TOO_LARGE: 413,
  NEVER_FIRES: 400,
  UNKNOWN_TASK_TYPE: 400,
  UNSUPPORTED_FORMAT: 409,
  CALENDAR_IN_USE: 409,
  AMBIGUOUS_TASK: 409,
  CONFLICT: 409,
  SKIPPED_OVERLAP: 409,
  UNAUTHORIZED: 401,
  RATE_LIMITED: 429,
  FORBIDDEN: 403,
  INTERNAL: 500,
};

/** What HTTP itself refuses. Our codes have no words for it; the status says what it is. */
export class RequestError extends CarillonError {
  readonly status: number;

  constructor(status: number, what: string, options: ConstructorParameters<typeof CarillonError>[2]) {
    super(status === 413 ? "PAYLOAD_TOO_LARGE" : "INVALID_OPTION", what, options);
    this.status = status;
  }
}

export function statusOf(error: CarillonError): number {
  if (error instanceof RequestError) return error.status;
  const known = STATUS[error.code];
  if (known !== undefined) return known;
  if (error.code.startsWith("INVALID_")) return 400;
  if (error.code.endsWith("_NOT_FOUND")) return 404;
  return error.code.startsWith("REDIS_") ? 503 : 500;
}

/** Headlines that Bull Board's page can translate; any other code is shown as it is. */
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

/** Whatever was thrown, as one of our codes. Express' errors, BullMQ's and those of Redis have none of their own. */
export function coded(error: unknown): CarillonError {
  if (isCarillonError(error)) return error;
  const refused = refusedByBull(error);
  if (refused) return refused;
  const text = error instanceof Error ? error.message : String(error);
  const status = error instanceof URIError ? 400 : (error as { status?: unknown } | null)?.status;
  if (typeof status === "number" && status >= 400 && status < 500) {
    return new RequestError(status, `${text}.`, { field: "request", cause: error });
  }
  // A mistake of a program may speak of connections too.
  const ofRedis = error instanceof TypeError || isBull(error) ? undefined : redisError(error);
  if (ofRedis && ofRedis.code !== "REDIS_ERROR") return ofRedis;
  return new CarillonError("INTERNAL", text, { cause: error });
}

/** Whatever else BullMQ says, by its number or first word. It names jobs, and a job `connector-sync` is no connection. */
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

export function refuse(res: Response, error: CarillonError): void {
  const body = isBoard(res.req) ? boardErrorBody(error) : { error: error.toJSON() };
  res.status(statusOf(error)).json(body);
}

/** Of the error only what says what went wrong: one of ioredis holds its command, and so data of jobs. */
export function logFailure(logger: Logger, thrown: unknown): void {
  const { message, stack, code } = stdSerializers.err(
    thrown instanceof Error ? thrown : new Error(String(thrown)),
  );
  logger.error({ err: Object.assign(new Error(message), { stack, code }) }, "a request failed");
}

/** Express finds an error handler by its four parameters. */
export function errorHandler(logger: Logger) {
  return (thrown: unknown, _req: Request, res: Response, next: NextFunction): void => {
    if (res.headersSent) {
      next(thrown);
      return;
    }
    const error = coded(thrown);
    if (error.code === "INTERNAL") logFailure(logger, thrown);
    refuse(res, error);
  };
}
