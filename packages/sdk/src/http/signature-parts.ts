import { invalid } from "@carillon/core/internal";

// Runs without Node.js too: `serve` uses it.

export const SIGNATURE_HEADER = "Carillon-Signature";
/** Largest difference between a signature's time and now, in ms. */
export const TOLERANCE = 300_000;

/** Shorter keys can be guessed. */
const MIN_KEY_LENGTH = 16;
/** A rotation needs two keys; ten leave ample room. */
const MAX_PARTS = 10;
const MAX_HEADER_LENGTH = 1_024;

export type Keys = string | readonly string[];

export interface VerifyOptions {
  /** Largest difference between the signature's time and now, in ms; default 300,000 (5 minutes). */
  tolerance?: number | undefined;
  /** For tests: the time, in epoch ms; default now. */
  now?: number | undefined;
}

/** The time of a signature, in seconds, and its HMACs in hex. Undefined if it is not one, or not of now. */
export function parseSignature(
  header: unknown,
  { tolerance = TOLERANCE, now = Date.now() }: VerifyOptions = {},
): { seconds: string; macs: string[] } | undefined {
  if (typeof header !== "string" || header.length > MAX_HEADER_LENGTH) return undefined;
  const parts = header.split(",").map((part) => part.trim());
  const times = parts.filter((part) => part.startsWith("t="));
  const seconds = /^t=(\d{1,12})$/.exec(times[0] ?? "")?.[1];
  if (times.length !== 1 || seconds === undefined || parts.length > MAX_PARTS) return undefined;
  // Not `>`: a tolerance of NaN must reject.
  if (!(Math.abs(now - Number(seconds) * 1_000) <= tolerance)) return undefined;
  return { seconds, macs: parts.flatMap((part) => /^v1=([0-9a-f]{64})$/.exec(part)?.[1] ?? []) };
}

/** @throws `INVALID_OPTION` */
export function keyList(keys: Keys): readonly string[] {
  const list = typeof keys === "string" ? [keys] : keys;
  if (
    Array.isArray(list) &&
    list.length > 0 &&
    list.length < MAX_PARTS &&
    list.every((key) => typeof key === "string" && key.length >= MIN_KEY_LENGTH)
  ) {
    return [...list];
  }
  // The message never contains the key.
  throw invalid(
    "signingKey",
    "no key, too many, or one that is too short.",
    `Give 1 to ${MAX_PARTS - 1} keys of at least ${MIN_KEY_LENGTH} characters.`,
  );
}
