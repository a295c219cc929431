import { CarillonError, parseInstant } from "@carillon/core";

/**
 * UTC ms of a point in time: ISO 8601 with an offset, a Date, or epoch milliseconds.
 * @throws `INVALID_OPTION` naming `field`
 */
export function instant(value: string | number | Date, field: string): number {
  const given = value instanceof Date ? value.getTime() : value;
  try {
    return parseInstant(typeof given === "number" ? Math.round(given) : given, field);
  } catch (cause) {
    throw new CarillonError("INVALID_OPTION", "not a time.", {
      field,
      remedy: "Give ISO 8601 with Z or an offset, a Date, or epoch milliseconds.",
      cause,
    });
  }
}
