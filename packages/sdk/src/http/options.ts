import type { Duration, Occurrence } from "@carillon/core";
import { assertOptions, durationOption, invalid, quote } from "@carillon/core/internal";
import { createGuard, type Guard, type GuardOptions } from "./guard.js";
import { headersFault } from "./headers.js";
import { DEFAULT_RESPONSE_BYTES, DEFAULT_TIMEOUT, MAX_RESPONSE_BYTES, MAX_TIMEOUT } from "./limits.js";
import { keyList } from "./signature-parts.js";
import { PERMANENT_STATUSES, type Statuses, statusesSchema } from "./status.js";

/**
 * One key, several keys (each signs the request, for example while keys are rotated), or a function that returns the
 * keys for a request; if it returns `undefined`, the request is not signed. A key has at least 16 characters.
 */
export type SigningKey =
  | string
  | readonly string[]
  | ((occurrence: Occurrence, url: URL) => string | readonly string[] | undefined);

export interface HttpRequestOptions extends GuardOptions {
  /**
   * Limit for reading a response body, in bytes; default 65,536 (64 KiB), at most 1 MiB. A run's record keeps
   * about 15,000 characters of it.
   */
  maxResponseBytes?: number | undefined;
  /** For tasks that name none: `10s`, or milliseconds; default `30s`, at most `1h`. */
  timeout?: Duration | undefined;
  /** Default: requests go unsigned. */
  signingKey?: SigningKey;
  /** Unexpected statuses that are not tried again; default 301, 308, and 4xx but for 408, 409, 425 and 429. */
  permanentStatuses?: Statuses | undefined;
  /** Default `Carillon`; a task's own header takes precedence. */
  userAgent?: string | undefined;
  /** Default `http`. */
  queue?: string | undefined;
  /** Certificate authorities (PEM), trusted instead of Node's own. */
  ca?: string | undefined;
}

export interface HttpSettings {
  readonly guard: Guard;
  readonly maxResponseBytes: number;
  /** In ms. */
  readonly timeout: number;
  readonly keysFor: (occurrence: Occurrence, url: URL) => readonly string[];
  readonly permanentStatuses: Statuses;
  readonly userAgent: string;
  readonly queue: string;
  readonly ca: string | undefined;
}

const KNOWN: Readonly<Record<keyof HttpRequestOptions, true>> = {
  allow: true,
  ca: true,
  maxResponseBytes: true,
  permanentStatuses: true,
  queue: true,
  resolve: true,
  signingKey: true,
  timeout: true,
  userAgent: true,
};

/** The options, checked, with their defaults. @throws `INVALID_OPTION` */
export function checked(options: HttpRequestOptions): HttpSettings {
  assertOptions(options, Object.keys(KNOWN) as (keyof HttpRequestOptions)[]);
  const {
    maxResponseBytes = DEFAULT_RESPONSE_BYTES,
    permanentStatuses = PERMANENT_STATUSES,
    userAgent = "Carillon",
  } = options;
  if (!Number.isInteger(maxResponseBytes) || maxResponseBytes < 0 || maxResponseBytes > MAX_RESPONSE_BYTES) {
    throw invalid(
      "maxResponseBytes",
      `got ${quote(maxResponseBytes)}.`,
      `Give a whole number from 0 to ${MAX_RESPONSE_BYTES}.`,
    );
  }
  if (!statusesSchema.safeParse(permanentStatuses).success) {
    throw invalid(
      "permanentStatuses",
      `got ${quote(permanentStatuses)}.`,
      'Give a status from 200 to 599, a range such as "4xx", or a list of them.',
    );
  }
  if (headersFault({ "User-Agent": userAgent }) !== undefined) {
    throw invalid("userAgent", "not a header's value.", "Use printable ASCII.");
  }
  return {
    guard: createGuard(options),
    maxResponseBytes,
    timeout: durationOption(options.timeout, "timeout", 1, MAX_TIMEOUT) ?? DEFAULT_TIMEOUT,
    keysFor: signer(options),
    permanentStatuses,
    userAgent,
    queue: options.queue ?? "http",
    ca: options.ca,
  };
}

/** The same, for requests that are worthless without a signature. @throws `INVALID_OPTION` also if no signing key is given */
export function checkedSigned(options: HttpRequestOptions): HttpSettings {
  if (Object.hasOwn(options, "signingKey")) return checked(options);
  throw invalid(
    "signingKey",
    "missing.",
    "Give a key: the requests are signed, so that the receiver can verify them.",
  );
}

function signer(options: HttpRequestOptions): HttpSettings["keysFor"] {
  if (!Object.hasOwn(options, "signingKey")) return () => [];
  const { signingKey } = options;
  if (typeof signingKey !== "function") {
    // An unset environment variable must not disable signing.
    const keys = keyList(signingKey ?? []);
    return () => keys;
  }
  return (occurrence, url) => {
    const keys = signingKey(occurrence, url);
    return keys === undefined ? [] : keyList(keys);
  };
}
