/** Codes of errors of Redis and of the connection to it. */
export const REDIS_CODES = [
  "REDIS_UNAVAILABLE",
  "REDIS_AUTH",
  "REDIS_READ_ONLY",
  "REDIS_OUT_OF_MEMORY",
  "REDIS_UNSAFE",
  "REDIS_ERROR",
] as const;

export type RedisCode = (typeof REDIS_CODES)[number];

/**
 * Stable codes of all errors that Carillon raises on purpose. Codes are public: scripts, tests and
 * the HTTP API compare them, so they are never renamed.
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
  "NEVER_FIRES",
  "UNKNOWN_TASK_TYPE",
  "UNSUPPORTED_FORMAT",
  // state
  "TASK_NOT_FOUND",
  "AMBIGUOUS_TASK",
  "RUN_NOT_FOUND",
  "QUEUE_NOT_FOUND",
  "BACKFILL_NOT_FOUND",
  "CALENDAR_NOT_FOUND",
  "FREEZE_NOT_FOUND",
  "SILENCE_NOT_FOUND",
  "REVISION_NOT_FOUND",
  "TOKEN_NOT_FOUND",
  "SET_NOT_FOUND",
  "CALENDAR_IN_USE",
  "CONFLICT",
  "SKIPPED_OVERLAP",
  "OWNER_LIMIT",
  "QUOTA_TASKS",
  "QUOTA_INTERVAL",
  "QUOTA_WAITING",
  "FROZEN",
  "STALE_PLAN",
  "PLAN_REFUSED",
  // environment
  ...REDIS_CODES,
  "UNAUTHORIZED",
  "TOKEN_EXPIRED",
  "FORBIDDEN",
  "RATE_LIMITED",
  "INTERNAL",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** HTTP statuses of codes that neither begin with `INVALID_` (400) or `REDIS_` (503) nor end with `_NOT_FOUND` (404). */
const STATUS: Partial<Record<ErrorCode, number>> = {
  PAYLOAD_TOO_LARGE: 413,
  NEVER_FIRES: 400,
  UNKNOWN_TASK_TYPE: 400,
  UNSUPPORTED_FORMAT: 409,
  CALENDAR_IN_USE: 409,
  AMBIGUOUS_TASK: 409,
  CONFLICT: 409,
  SKIPPED_OVERLAP: 409,
  FROZEN: 409,
  STALE_PLAN: 409,
  PLAN_REFUSED: 409,
  UNAUTHORIZED: 401,
  TOKEN_EXPIRED: 401,
  OWNER_LIMIT: 429,
  QUOTA_TASKS: 409,
  QUOTA_INTERVAL: 409,
  QUOTA_WAITING: 429,
  RATE_LIMITED: 429,
  FORBIDDEN: 403,
};

/**
 * Lets `instanceof` of an error class know the errors of another copy of its package, by a brand of this name. For a subclass,
 * `instanceof` keeps its usual meaning.
 */
export function branded(Kind: { readonly prototype: Error }, name: string): void {
  const brand = Symbol.for(`carillon.${name}`);
  Object.defineProperty(Kind.prototype, brand, { value: true });
  Object.defineProperty(Kind, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== Kind) return Function.prototype[Symbol.hasInstance].call(this, value);
      return typeof value === "object" && value !== null && brand in value;
    },
  });
}

export interface CarillonErrorOptions {
  /** The input at fault, as a path: `schedule.cron`, `tags[2]`. */
  field?: string;
  /** Remedy, in one sentence. */
  remedy?: string;
  cause?: unknown;
}

/**
 * The only error class. `message` already contains the field and the remedy, so printing it is enough;
 * `code`, `field`, `remedy` and `statusCode` are for programs. `instanceof` works across copies of this package.
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

  /** A suitable HTTP status, from 400 to 503. Fastify and NestJS 11 answer with it. */
  get statusCode(): number {
    const known = STATUS[this.code];
    if (known !== undefined) return known;
    if (this.code.startsWith("INVALID_")) return 400;
    if (this.code.endsWith("_NOT_FOUND")) return 404;
    return this.code.startsWith("REDIS_") ? 503 : 500;
  }

  /** The same: Nest 12, Express and others that expect errors like those of http-errors answer with it. */
  get status(): number {
    return this.statusCode;
  }

  /** Whether the message is meant for the caller: faults of the input, not of the environment. */
  get expose(): boolean {
    return this.statusCode < 500;
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

branded(CarillonError, "error");

export function isCarillonError(error: unknown, code?: ErrorCode): error is CarillonError {
  return error instanceof CarillonError && (code === undefined || error.code === code);
}

/** For an option that is wrong. @param what the fault, a sentence */
export function invalid(field: string, what: string, remedy: string): CarillonError {
  return new CarillonError("INVALID_OPTION", what, { field, remedy });
}

/** For a call that does not fit the present state. */
export function conflict(what: string, remedy: string): CarillonError {
  return new CarillonError("CONFLICT", what, { remedy });
}

/** For a worker or node that is started after its stop. */
export function stoppedError(what: "worker" | "node"): CarillonError {
  return conflict(`this ${what} was stopped.`, `A stopped ${what} cannot be started again: make a new one.`);
}

/** Makes a user's text safe to print in one line of a message: quoted, escaped, cut at `max` characters. */
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
    // A BigInt, a cycle, or a toJSON that throws.
    return typeof value === "bigint" ? `${value}n` : Object.prototype.toString.call(value);
  }
}

/** Characters that JSON does not escape, but that may end a line, are invisible, or reverse the text direction. */
const UNSAFE = /[\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]/g;
