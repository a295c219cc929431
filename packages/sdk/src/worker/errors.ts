import { formatDuration } from "@carillon/core";
import { RateLimitError, UnrecoverableError } from "bullmq";

/** Throw it if a retry is useless: the run gets no further attempt. */
export class PermanentError extends UnrecoverableError {
  constructor(message: string, options?: ErrorOptions) {
    super(message);
    if (options?.cause !== undefined) this.cause = options.cause;
  }
}

/** Abort reason: the time limit was exceeded. */
export class TimeLimitError extends Error {
  override readonly name = "TimeLimitError";
  /** In ms. */
  readonly limit: number;

  constructor(limit: number) {
    super(`The time limit of ${formatDuration(limit)} is over.`);
    this.limit = limit;
  }
}

/** Abort reason: the run was cancelled. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";

  constructor() {
    super("The run was cancelled.");
  }
}

/** Abort reason: this worker lost the job's lock. */
export class LockLostError extends Error {
  override readonly name = "LockLostError";

  constructor() {
    super("The job's lock was lost: another worker takes it over.");
  }
}

/** Abort reason: the worker stops, and this attempt did not end in time. */
export class StoppingError extends Error {
  override readonly name = "StoppingError";

  constructor() {
    super("The worker stops.");
  }
}

/** The handler did not stop in its grace. Its job fails for good: a second attempt would run at the same time. */
export class StuckError extends UnrecoverableError {
  /** @param grace in ms */
  constructor(reason: Error, grace: number) {
    super(`${reason.message} The handler did not stop within ${formatDuration(grace)}.`);
    this.cause = reason;
  }
}

/** BullMQ treats errors with these names as its own, and would not end the job. */
const BULLMQS = ["DelayedError", "WaitingError", "WaitingChildrenError"];
/**
 * BullMQ treats an error with this text as a rate limit: the job would be fetched again at once, without counting the
 * attempt.
 */
const RATE_LIMITED = new RateLimitError().message;

const MOST_CAUSES = 3;
const LONGEST_CAUSE = 300;

/**
 * Converts whatever a handler threw to an error that BullMQ can fail the job with, and that has the same meaning for
 * BullMQ and us.
 */
export function asError(thrown: unknown): Error {
  try {
    return plainError(thrown);
  } catch {
    return new Error("The thrown value cannot be converted to an error.");
  }
}

function plainError(thrown: unknown): Error {
  if (!(thrown instanceof Error)) return new Error(String(thrown));
  const { name, message, stack } = thrown;
  // Errors of another copy of BullMQ fail `instanceof`; BullMQ itself checks the name.
  const foreign = name === "UnrecoverableError" && !(thrown instanceof UnrecoverableError);
  const taken = BULLMQS.includes(name) || message === RATE_LIMITED;
  const texts = typeof message === "string" && typeof (stack ?? "") === "string";
  if (texts && !foreign && !taken) return thrown;
  const text = message === RATE_LIMITED ? "The handler asked BullMQ for a rate limit." : String(message);
  const permanent = foreign || thrown instanceof UnrecoverableError;
  const error = new (permanent ? PermanentError : Error)(text, { cause: thrown });
  if (foreign && texts) error.stack = stack as string;
  return error;
}

/** For a run's record: the stack, with causes in its first line, because `fetch failed` alone says little. */
export function errorText(error: Error): string {
  const text = error.stack ?? error.message;
  const causes = causesOf(error, text);
  if (causes.length === 0) return text;
  const [first, ...frames] = text.split("\n");
  return [`${first} (${causes.map((cause) => `cause: ${cause}`).join("; ")})`, ...frames].join("\n");
}

/** First lines of the nearest causes that `text` does not contain. */
function causesOf(error: Error, text: string): string[] {
  const causes: string[] = [];
  try {
    let at: unknown = error.cause;
    for (let depth = 0; depth < MOST_CAUSES && at !== undefined; depth++) {
      // Node.js leaves the message of several failed connections empty.
      const { message, code, cause } = Object(at) as { message?: unknown; code?: unknown; cause?: unknown };
      const [line = ""] = String(message || code || at).split("\n", 1);
      if (!text.includes(line) && !causes.includes(line)) causes.push(line.slice(0, LONGEST_CAUSE));
      at = cause;
    }
  } catch {
    // Anything can be thrown, and be a cause.
  }
  return causes;
}
