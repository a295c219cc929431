/**
 * `carillon dev`, from its compiled file: the bundle has an SDK of its own, and a console takes only clients of the one that it
 * imports.
 */
export async function loadDev(): Promise<typeof import("./dev/dev.js")> {
  // From `bundle` as well as from `dist`.
  const file = new URL("../dist/dev/dev.js", import.meta.url).href;
  return (await import(file)) as typeof import("./dev/dev.js");
}
