/**
 * Every error that Carillon raises on purpose, by its stable code. Codes are public: scripts, tests and
 * the HTTP API compare them, so one is never renamed.
 */
export const ERROR_CODES = [
  // input
  "INVALID_TASK",
  "INVALID_NAME",
  "INVALID_SCHEDULE",
  "INVALID_TIMEZONE",
  "INVALID_DURATION",
  "INVALID_PAYLOAD",
  "PAYLOAD_TOO_LARGE",
  "INVALID_OPTION",
  "INVALID_FILTER",
  "NEVER_FIRES",
  "UNKNOWN_TASK_TYPE",
  "UNSUPPORTED_FORMAT",
  // state
  "TASK_NOT_FOUND",
  "AMBIGUOUS_TASK",
  "RUN_NOT_FOUND",
  "BACKFILL_NOT_FOUND",
  "CALENDAR_NOT_FOUND",
  "CALENDAR_IN_USE",
  "CONFLICT",
  "SKIPPED_OVERLAP",
  // surroundings
  "REDIS_UNAVAILABLE",
  "REDIS_AUTH",
  "REDIS_READ_ONLY",
  "REDIS_OUT_OF_MEMORY",
  "REDIS_UNSAFE",
  "REDIS_ERROR",
  "UNAUTHORIZED",
  "FORBIDDEN",
  "RATE_LIMITED",
  "INTERNAL",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export interface CarillonErrorOptions {
  /** The input at fault, as a path: `schedule.cron`, `tags[2]`. */
  field?: string;
  /** What to do about it, one sentence. */
  remedy?: string;
  cause?: unknown;
}

/**
 * The one error class. `message` already contains the field and the remedy, so printing it is enough;
 * `code`, `field` and `remedy` are there for programs.
 */
export class CarillonError extends Error {
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly remedy: string | undefined;

  constructor(code: ErrorCode, what: string, options: CarillonErrorOptions = {}) {
    const at = options.field ? `${options.field}: ` : "";
    const then = options.remedy ? ` ${options.remedy}` : "";
    super(`${at}${what}${then}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CarillonError";
    this.code = code;
    this.field = options.field;
    this.remedy = options.remedy;
  }

  toJSON(): { code: ErrorCode; message: string; field?: string; remedy?: string } {
    return {
      code: this.code,
      message: this.message,
      ...(this.field === undefined ? {} : { field: this.field }),
      ...(this.remedy === undefined ? {} : { remedy: this.remedy }),
    };
  }
}

export function isCarillonError(error: unknown, code?: ErrorCode): error is CarillonError {
  return error instanceof CarillonError && (code === undefined || error.code === code);
}

/** A user's text, made safe to print in one line of a message: quoted, escaped, cut at `max` characters. */
export function quote(value: unknown, max = 60): string {
  const text = typeof value === "string" ? value : shown(value);
  const cut = text.length > max ? `${text.slice(0, max)}…` : text;
  return JSON.stringify(cut).replace(
    UNSAFE,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function shown(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // A BigInt, a circle, a toJSON that throws.
    return typeof value === "bigint" ? `${value}n` : Object.prototype.toString.call(value);
  }
}

/** Beside what JSON escapes: ends a line somewhere, cannot be seen, or turns text round. */
const UNSAFE = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
