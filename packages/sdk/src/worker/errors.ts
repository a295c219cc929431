import { inspect } from "node:util";
import { formatDuration, type Json } from "@carillon/core";
import { branded } from "@carillon/core/internal";
import { LONGEST_TEXT } from "@carillon/store";
import { bull } from "@carillon/store/internal";
import { isPermanentError, PermanentError } from "../permanent-error.js";
import { assertHasJson } from "../result.js";

/** Whether a retry is useless, also by an error of the BullMQ that runs here. */
export function isPermanent(error: Error): boolean {
  return isPermanentError(error) || error instanceof bull().UnrecoverableError;
}

/** The result as JSON. Throws if it cannot be written: BullMQ would then fail the job, and the run must agree. */
export function resultJson(result: unknown): Json | undefined {
  try {
    assertHasJson(result);
    const text = JSON.stringify(result) as string | undefined;
    return text === undefined ? undefined : (result as Json);
  } catch (error) {
    throw new PermanentError(`The handler's result is not JSON: ${String(error).split("\n")[0]}.`);
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

branded(TimeLimitError, "time-limit-error");

/** Abort reason: the run was cancelled. */
export class CancelledError extends Error {
  override readonly name = "CancelledError";

  constructor() {
    super("The run was cancelled.");
  }
}

branded(CancelledError, "cancelled-error");

/** Abort reason: this worker lost the job's lock. */
export class LockLostError extends Error {
  override readonly name = "LockLostError";

  constructor() {
    super("The job's lock was lost: another worker takes it over.");
  }
}

branded(LockLostError, "lock-lost-error");

/** Abort reason: the worker stops, and this attempt did not end in time. */
export class StoppingError extends Error {
  override readonly name = "StoppingError";

  constructor() {
    super("The worker stops.");
  }
}

branded(StoppingError, "stopping-error");

/** The handler did not stop in its grace. Its job fails for good: a second attempt would run at the same time. */
export class StuckError extends PermanentError {
  /** @param grace in ms */
  constructor(reason: Error, grace: number) {
    super(`${reason.message} The handler did not stop within ${formatDuration(grace)}.`, { cause: reason });
  }
}

/** BullMQ treats errors with these names as its own, and would not end the job. */
const BULLMQS = ["DelayedError", "WaitingError", "WaitingChildrenError"];

const MOST_CAUSES = 3;
const LONGEST_CAUSE = 300;
/** Errors of an `AggregateError` that its text names. */
const MOST_PARTS = 5;

/**
 * Longest message and stack of an error, in characters, wherever they are kept: a run's record, its job, BullMQ's events, an item, an
 * alert, a log. A stack begins with the message.
 */
const [LONGEST_MESSAGE, LONGEST_STACK] = [LONGEST_TEXT / 2, LONGEST_TEXT];

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
  if (!(thrown instanceof Error)) return bounded(new Error(textOf(thrown)));
  const { name, message, stack } = thrown;
  // The job would be fetched again at once, without counting the attempt.
  const limited = message === bull().RATE_LIMIT_ERROR;
  const texts = typeof message === "string" && typeof (stack ?? "") === "string";
  if (texts && !limited && !BULLMQS.includes(name)) return bounded(thrown);
  const text = limited ? "The handler asked BullMQ for a rate limit." : String(message);
  return bounded(new (isPermanentError(thrown) ? PermanentError : Error)(text, { cause: thrown }));
}

/** The error, or one with the same name and meaning whose message names its parts, and is cut like its stack. */
function bounded(error: Error): Error {
  const { stack = "" } = error;
  const message = `${error.message}${partsOf(error)}`;
  if (message === error.message && message.length <= LONGEST_MESSAGE && stack.length <= LONGEST_STACK)
    return error;
  const short = cut(message, LONGEST_MESSAGE);
  return copyOf(
    error,
    short,
    cut(
      stack.replace(error.message, () => short),
      LONGEST_STACK,
    ),
  );
}

function copyOf(error: Error, message: string, stack: string): Error {
  const copy = isPermanent(error) ? new PermanentError(message) : new Error(message);
  if (error.cause !== undefined) copy.cause = error.cause;
  copy.name = error.name;
  copy.stack = stack;
  return copy;
}

/** ` (errors: …; … and 3 more)` for an `AggregateError`. */
function partsOf({ errors }: Error & { errors?: unknown }): string {
  if (!Array.isArray(errors) || errors.length === 0) return "";
  const first = errors.slice(0, MOST_PARTS).map((one) => firstLine(one));
  const more = errors.length > MOST_PARTS ? ` and ${errors.length - MOST_PARTS} more` : "";
  return ` (errors: ${first.join("; ")}${more})`;
}

function firstLine(thrown: unknown): string {
  // Node.js leaves the message of several failed connections empty.
  const { message, code } = Object(thrown) as { message?: unknown; code?: unknown };
  const [line = ""] = textOf(message || code || thrown).split("\n", 1);
  return cut(line, LONGEST_CAUSE);
}

/** Anything that was thrown, as text; of an object its content. */
function textOf(thrown: unknown): string {
  const text =
    typeof thrown === "object" && thrown !== null && !hasText(thrown)
      ? inspect(thrown, SHOWN)
      : String(thrown);
  return cut(text, LONGEST_MESSAGE);
}

const SHOWN = { depth: 3, maxArrayLength: 20, maxStringLength: 1_000, breakLength: Number.POSITIVE_INFINITY };

/** Whether it says itself how it is written. */
function hasText(thrown: object): boolean {
  return (
    !Array.isArray(thrown) &&
    typeof thrown.toString === "function" &&
    thrown.toString !== Object.prototype.toString
  );
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** Size of a job's stacks, in characters, beyond which a stack that is added is its first line only: BullMQ keeps one for each attempt. */
const LONGEST_STACKS = 4 * LONGEST_STACK;

/** The error with which an attempt's job fails. @param stacks of earlier attempts, as the job keeps them */
export function withRoom(error: Error, stacks: readonly string[]): Error {
  const kept = stacks.reduce((sum, { length }) => sum + length, 0);
  const { stack = "" } = error;
  if (kept + stack.length <= LONGEST_STACKS) return error;
  // Not shorter than a line: it is counted that a job's stacks grow.
  return copyOf(error, error.message, cut(stack.split("\n", 1)[0] || "Error", 100));
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
      const line = firstLine(at);
      if (!text.includes(line) && !causes.includes(line)) causes.push(`${line}${partsOf(at as Error)}`);
      at = (Object(at) as { cause?: unknown }).cause;
    }
  } catch {
    // Anything can be thrown, and be a cause.
  }
  return causes;
}
