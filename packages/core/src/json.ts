import { CarillonError } from "./errors.js";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface PayloadLimits {
  /** Size of the payload as JSON in UTF-8; default 262,144 (256 KiB). */
  maxBytes: number;
  /** Nesting of arrays and objects; default 64. */
  maxDepth: number;
}

export const DEFAULT_PAYLOAD_LIMITS: PayloadLimits = { maxBytes: 256 * 1024, maxDepth: 64 };

/**
 * Turns a payload into the JSON text that is stored, or refuses it. Only plain JSON passes: values that
 * `JSON.stringify` would silently drop or change (functions, dates, NaN, cycles) are errors, as is an own
 * `__proto__` key, which becomes a prototype when a handler merges objects.
 *
 * @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`
 */
export function encodePayload(value: unknown, limits: PayloadLimits = DEFAULT_PAYLOAD_LIMITS): string {
  assertPlainJson(value, "payload", limits.maxDepth);
  const text = JSON.stringify(value);
  const bytes = utf8Length(text);
  if (bytes > limits.maxBytes) {
    throw new CarillonError("PAYLOAD_TOO_LARGE", `${bytes} bytes of JSON, more than ${limits.maxBytes}.`, {
      field: "payload",
      remedy: "Store the data elsewhere and put a reference to it into the payload.",
    });
  }
  return text;
}

function assertPlainJson(value: unknown, path: string, depthLeft: number): asserts value is Json {
  switch (typeof value) {
    case "string":
    case "boolean":
      return;
    case "number":
      if (Number.isFinite(value)) return;
      break;
    case "object": {
      if (value === null) return;
      if (depthLeft === 0) {
        throw new CarillonError("INVALID_PAYLOAD", "nested too deeply (or refers to itself).", {
          field: `${path.slice(0, 24)}…`,
          remedy: "Flatten the payload.",
        });
      }
      if (Array.isArray(value)) {
        for (let i = 0; i < value.length; i++) assertPlainJson(value[i], `${path}[${i}]`, depthLeft - 1);
        return;
      }
      const prototype: unknown = Object.getPrototypeOf(value);
      if (prototype === Object.prototype || prototype === null) {
        assertPlainMembers(value as Record<string, unknown>, path, depthLeft);
        return;
      }
    }
  }
  throw new CarillonError("INVALID_PAYLOAD", `${describeValue(value)} is not JSON.`, {
    field: path.slice(0, 80),
    remedy: "Send strings, finite numbers, booleans, null, arrays and plain objects.",
  });
}

function assertPlainMembers(object: Record<string, unknown>, path: string, depthLeft: number): void {
  for (const key of Object.keys(object)) {
    if (key === "__proto__") {
      throw new CarillonError("INVALID_PAYLOAD", "the key __proto__ is refused.", {
        field: path.slice(0, 80),
        remedy: "Rename the key.",
      });
    }
    // Optional fields may be undefined; JSON omits them.
    if (object[key] !== undefined) assertPlainJson(object[key], `${path}.${key}`, depthLeft - 1);
  }
}

function describeValue(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "object" && value !== null) return `a ${value.constructor?.name ?? "object"}`;
  return value === undefined ? "undefined" : `a ${typeof value}`;
}

export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code >= 0xd800 && code < 0xdc00) {
      bytes += 4;
      i += 1;
    } else bytes += 3;
  }
  return bytes;
}
