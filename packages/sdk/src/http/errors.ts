import { branded } from "@carillon/core/internal";

/**
 * `HTTP_STATUS`: an answer came, but not an expected one. `HTTP_TIMEOUT`: no whole answer in time. `HTTP_UNREACHABLE`: name
 * not found, connection refused or broken, certificate not accepted, or not HTTP. `HTTP_ABORTED`: the caller's signal.
 */
export type HttpErrorCode = "HTTP_STATUS" | "HTTP_TIMEOUT" | "HTTP_UNREACHABLE" | "HTTP_ABORTED";

/**
 * A request that failed on its way or was answered unexpectedly. Its message names the host and nothing else of the request:
 * paths, queries, headers and bodies hold secrets. For the same reason it has no `cause`.
 */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code: HttpErrorCode;
  /** The status of the response, if there was one. */
  readonly status: number | undefined;
  /** Wait in ms that the receiver asks for. The next attempt comes no sooner, within the `max` of the task's `retry`. */
  readonly retryAfter: number | undefined;

  constructor(code: HttpErrorCode, message: string, status?: number, retryAfter?: number) {
    super(message);
    this.code = code;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

branded(HttpError, "http-error");
