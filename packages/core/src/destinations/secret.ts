import type { z } from "zod";
import { fingerprint } from "../fingerprint.js";

const HIDDEN = /\[hidden [0-9a-f]{8}\]$/;

/**
 * A text that is shown to nobody: JSON, templates and logs of it hold a placeholder with its fingerprint. Only code that
 * stores or sends it calls `reveal`.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  /** The host of a URL stays readable. */
  toString(): string {
    const mark = `[hidden ${fingerprint(this.#value).toString(16).padStart(8, "0")}]`;
    return /^https?:/.test(this.#value) ? `${new URL(this.#value).origin}/${mark}` : mark;
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

/** Marks a field as a secret. Its placeholder is refused, because it was shown instead of a value that is not known here. */
export function secret<Schema extends z.ZodType<string>>(schema: Schema) {
  return schema
    .refine((value) => !HIDDEN.test(value), "is the placeholder of a secret. Give the secret itself.")
    .transform((value) => new Secret(value));
}

/** A copy in which each `Secret`, at any depth, is replaced. */
function replaced(value: unknown, by: (secret: Secret) => unknown): unknown {
  if (value instanceof Secret) return by(value);
  if (Array.isArray(value)) return value.map((one) => replaced(one, by));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaced(one, by)]));
}

/** A copy with the secrets themselves, to be stored or sent. */
export function revealed(value: unknown): unknown {
  return replaced(value, (secret) => secret.reveal());
}

/** A copy of new data in which placeholders of stored secrets stand for these again. */
export function restored(given: unknown, stored: unknown): unknown {
  const known = new Map<string, Secret>();
  replaced(stored, (secret) => known.set(secret.toString(), secret));
  if (known.size === 0) return given;
  const restore = (value: unknown): unknown => {
    if (typeof value === "string") return known.get(value) ?? value;
    if (Array.isArray(value)) return value.map(restore);
    if (typeof value !== "object" || value === null || value instanceof Secret) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, restore(one)]));
  };
  return restore(given);
}

/** Whether new data has a placeholder in it. */
export function hasPlaceholder(given: unknown): boolean {
  if (typeof given === "string") return HIDDEN.test(given);
  return (
    typeof given === "object" &&
    given !== null &&
    !(given instanceof Secret) &&
    Object.values(given).some(hasPlaceholder)
  );
}
