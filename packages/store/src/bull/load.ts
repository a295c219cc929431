/**
 * BullMQ with what we borrow of it. It needs half of the CPU of an import of the SDK, so it is loaded with the first connection, and not
 * by a program that connects to nothing: a build, a test, a command that prints its help.
 */
type Bull = typeof import("./bullmq.js");

let loaded: Bull | undefined;

/** Each connection that is ready has done this. */
export async function loadBull(): Promise<Bull> {
  loaded ??= await import("./bullmq.js");
  return loaded;
}

/** For callers that have a connection. */
export function bull(): Bull {
  if (!loaded) throw new Error("BullMQ is used before a connection was opened.");
  return loaded;
}

/** The version of BullMQ that this process works with. */
export async function bullVersion(): Promise<string> {
  return (await loadBull()).bullVersion();
}
