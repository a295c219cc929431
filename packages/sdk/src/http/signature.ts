import { createHmac, timingSafeEqual } from "node:crypto";
import { CarillonError } from "@carillon/core";

export const SIGNATURE_HEADER = "Carillon-Signature";

/** Shorter keys can be guessed. */
const MIN_KEY_LENGTH = 16;
/** A rotation needs two keys; ten leave ample room. */
const MAX_PARTS = 10;
const MAX_HEADER_LENGTH = 1_024;

type Body = string | Uint8Array;
type Keys = string | readonly string[];

export interface VerifyOptions {
  /** Largest difference between the signature's time and now, in ms; default 300,000 (5 minutes). */
  tolerance?: number | undefined;
  /** For tests: the time, in epoch ms; default now. */
  now?: number | undefined;
}

/**
 * The value of `Carillon-Signature` for a body: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, with a `v1`
 * for each key.
 *
 * @param now epoch ms; default now
 * @throws `INVALID_OPTION` for a key shorter than 16 characters, or none
 */
export function signBody(body: Body, keys: Keys, now = Date.now()): string {
  const seconds = String(Math.floor(now / 1_000));
  return [
    `t=${seconds}`,
    ...keyList(keys).map((key) => `v1=${mac(key, seconds, body).toString("hex")}`),
  ].join();
}

/**
 * Whether a body was signed with one of the keys, lately. For the receiver of a request: give it the body's bytes as they
 * came, not parsed and written again.
 *
 * @param header the value of `Carillon-Signature`; anything that is not one is `false`
 * @throws `INVALID_OPTION` for a key shorter than 16 characters, or none
 */
export function verifySignature(
  body: Body,
  header: unknown,
  keys: Keys,
  { tolerance = 300_000, now = Date.now() }: VerifyOptions = {},
): boolean {
  const list = keyList(keys);
  if (typeof header !== "string" || header.length > MAX_HEADER_LENGTH) return false;
  const parts = header.split(",").map((part) => part.trim());
  const times = parts.filter((part) => part.startsWith("t="));
  const seconds = /^t=(\d{1,12})$/.exec(times[0] ?? "")?.[1];
  if (times.length !== 1 || seconds === undefined || parts.length > MAX_PARTS) return false;
  // Not `>`: a tolerance of NaN must reject.
  if (!(Math.abs(now - Number(seconds) * 1_000) <= tolerance)) return false;
  const given = parts.flatMap((part) => {
    const hex = /^v1=([0-9a-f]{64})$/.exec(part)?.[1];
    return hex === undefined ? [] : [Buffer.from(hex, "hex")];
  });
  return list.some((key) => {
    const expected = mac(key, seconds, body);
    return given.some((one) => timingSafeEqual(one, expected));
  });
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
  throw new CarillonError("INVALID_OPTION", "no key, too many, or one that is too short.", {
    field: "signingKey",
    remedy: `Give 1 to ${MAX_PARTS - 1} keys of at least ${MIN_KEY_LENGTH} characters.`,
  });
}

function mac(key: string, seconds: string, body: Body): Buffer {
  return createHmac("sha256", key).update(`${seconds}.`).update(body).digest();
}
