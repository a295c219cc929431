import { CarillonError, type ErrorCode } from "./errors.js";

/** @param path of the option that these are, where they are one's @throws `INVALID_OPTION` where a name is misspelt, or these are no options at all */
export function assertOptions<Options extends object>(
  options: Options,
  known: readonly (keyof Options & string)[],
  path?: string,
): void {
  const names: readonly string[] = known;
  const remedy = `Known: ${names.join(", ")}.`;
  if (typeof options !== "object" || options === null) {
    throw new CarillonError("INVALID_OPTION", "not an object.", { field: path ?? "options", remedy });
  }
  const unknown = Object.keys(options).find((key) => !names.includes(key));
  if (unknown !== undefined) {
    const field = path === undefined ? unknown : `${path}.${unknown}`;
    throw new CarillonError("INVALID_OPTION", "there is no such option.", { field, remedy });
  }
}

/** What is undefined is left out. @throws `INVALID_OPTION`, or another code */
export function assertWhole(
  value: number | undefined,
  field: string,
  least: number,
  most: number,
  code: ErrorCode = "INVALID_OPTION",
): void {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return;
  throw new CarillonError(code, `got ${String(value)}.`, {
    field,
    remedy: `Give a whole number from ${least} to ${most}.`,
  });
}
