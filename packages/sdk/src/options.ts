import { CarillonError } from "@carillon/core";

/** The longest that a timer can wait, in ms. */
export const MOST_MS = 2 ** 31 - 1;

/** @throws `INVALID_OPTION` */
export function assertList(value: unknown, field: string, remedy: string): void {
  if (Array.isArray(value)) return;
  throw new CarillonError("INVALID_OPTION", value === undefined ? "missing." : "not a list.", {
    field,
    remedy,
  });
}
