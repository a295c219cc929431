import { createHmac, timingSafeEqual } from "node:crypto";
import { type Keys, keyList, parseSignature, type VerifyOptions } from "./signature-parts.js";

type Body = string | Uint8Array;

/**
 * The value of `Carillon-Signature` for a body: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`, with a `v1`
 * for each key.
 *
 * @param now epoch ms; default now
 * @throws `INVALID_OPTION` for a key shorter than 16 characters, or none
 */
export function signBody(body: Body, keys: Keys, now = Date.now()): string {
  return signWith("", body, keys, now);
}

/** @param purpose begins the signed text, so that a signature made for one purpose is worthless for another */
export function signWith(purpose: string, body: Body, keys: Keys, now = Date.now()): string {
  const seconds = String(Math.floor(now / 1_000));
  const macs = keyList(keys).map((key) => `v1=${mac(key, `${purpose}${seconds}.`, body).toString("hex")}`);
  return [`t=${seconds}`, ...macs].join();
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
  options: VerifyOptions = {},
): boolean {
  const list = keyList(keys);
  const { seconds, macs } = parseSignature(header, options) ?? { seconds: "", macs: [] };
  return list.some((key) => {
    const expected = mac(key, `${seconds}.`, body);
    return macs.some((one) => timingSafeEqual(Buffer.from(one, "hex"), expected));
  });
}

function mac(key: string, begin: string, body: Body): Buffer {
  return createHmac("sha256", key).update(begin).update(body).digest();
}
