import { CarillonError, parseInstant } from "@carillon/core";

/**
 * UTC ms of a point in time: ISO 8601 with an offset, a Date, or whole epoch milliseconds.
 * @throws `INVALID_OPTION` naming `field`
 */
export function instant(value: string | number | Date, field: string): number {
  try {
    return parseInstant(value, field);
  } catch (cause) {
    throw new CarillonError("INVALID_OPTION", "not a time.", {
      field,
      remedy: "Give ISO 8601 with Z or an offset, a Date, or epoch milliseconds.",
      cause,
    });
  }
}

/** Checks like `instant`, but accepts computed times that are not whole numbers. */
export function roundedInstant(value: string | number | Date, field: string): number {
  return instant(typeof value === "number" ? Math.round(value) : value, field);
}
