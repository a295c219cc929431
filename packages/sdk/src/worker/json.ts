import { CarillonError, isCarillonError, type Json } from "@carillon/core";
import { encodePayload } from "@carillon/core/internal";

/** Size limit of a checkpoint as JSON, in bytes. */
export const LARGEST_CHECKPOINT = 64 * 1024;

/**
 * The value as JSON text, or a refusal that names it.
 * @param field its name in errors: `checkpoint`, `items[3]`
 * @throws `INVALID_PAYLOAD`, `PAYLOAD_TOO_LARGE`
 */
export function plainJson(value: unknown, field: string, maxBytes: number): string {
  try {
    return encodePayload(value, { maxBytes, maxDepth: 64 });
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const path = error.field ?? "";
    const end = error.remedy === undefined ? undefined : -error.remedy.length - 1;
    throw new CarillonError(error.code, error.message.slice(path.length + 2, end), {
      field: path.replace(/^payload/, field),
      remedy:
        error.code === "PAYLOAD_TOO_LARGE"
          ? "Keep the data elsewhere, and here a reference to it."
          : "Give strings, finite numbers, booleans, null, arrays and plain objects.",
      cause: error,
    });
  }
}

/** The value, or a note with its length if its JSON has more than the given number of characters. */
export function cutJson(value: Json | undefined, most: number): Json | undefined {
  const { length } = JSON.stringify(value) ?? "";
  return length > most ? { cut: true, length } : value;
}

export function lineOf(message: string, details: object | undefined): string {
  if (!details) return message;
  try {
    return `${message} ${JSON.stringify(details)}`;
  } catch {
    return `${message} (details that are not JSON)`;
  }
}
