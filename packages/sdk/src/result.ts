/** @throws `TypeError` for a result whose JSON would be nothing, or lack its content: a function, a stream, a Map */
export function assertHasJson(result: unknown): void {
  const lost = typeof result === "function" || typeof result === "symbol" ? typeof result : lostClass(result);
  if (lost !== undefined) throw new TypeError(`JSON cannot hold a ${lost}`);
}

/** The class of an object that JSON empties. */
function lostClass(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null || "toJSON" in result) return undefined;
  const { name = "Object" } = result.constructor ?? {};
  if (name === "Object" || Array.isArray(result)) return undefined;
  const isStream = Symbol.asyncIterator in result || "getReader" in result || "pipe" in result;
  return isStream || JSON.stringify(result) === "{}" ? name : undefined;
}
