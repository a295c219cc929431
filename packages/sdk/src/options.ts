import { invalid } from "@carillon/core/internal";

/** The longest that a timer can wait, in ms. */
export const MOST_MS = 2 ** 31 - 1;

/** @throws `INVALID_OPTION` */
export function assertList(value: unknown, field: string, remedy: string): void {
  if (Array.isArray(value)) return;
  throw invalid(field, value === undefined ? "missing." : "not a list.", remedy);
}
