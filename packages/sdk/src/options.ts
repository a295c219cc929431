import { CarillonError } from "@carillon/core";

/** The longest that a timer can wait, in ms. */
export const MOST_MS = 2 ** 31 - 1;

/** @throws `INVALID_OPTION` where a name is misspelt, or these are no options at all */
export function assertOptions<Options extends object>(
  options: Options,
  known: readonly (keyof Options & string)[],
): void {
  const names: readonly string[] = known;
  const remedy = `Known: ${names.join(", ")}.`;
  if (typeof options !== "object" || options === null) {
    throw new CarillonError("INVALID_OPTION", "not an object.", { field: "options", remedy });
  }
  const field = Object.keys(options).find((key) => !names.includes(key));
  if (field !== undefined) {
    throw new CarillonError("INVALID_OPTION", "there is no such option.", { field, remedy });
  }
}

/** @throws `INVALID_OPTION` */
export function assertWhole(value: number | undefined, field: string, least: number, most: number): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw new CarillonError("INVALID_OPTION", `got ${String(value)}.`, {
    field,
    remedy: `Give a whole number from ${least} to ${most}.`,
  });
}

/** @throws `INVALID_OPTION` */
export function assertList(value: unknown, field: string, remedy: string): void {
  if (Array.isArray(value)) return;
  throw new CarillonError("INVALID_OPTION", value === undefined ? "missing." : "not a list.", {
    field,
    remedy,
  });
}

/** @throws `INVALID_OPTION` */
export function assertConnection(options: { connection?: unknown; store?: unknown }): void {
  if ((options.connection ?? options.store ?? undefined) !== undefined) return;
  throw new CarillonError("INVALID_OPTION", "missing.", {
    field: "connection",
    remedy: "Give a Redis URL, for example redis://localhost:6379.",
  });
}
