/**
 * BullMQ with what we borrow of it. It needs half of the CPU of an import of the SDK, so it is loaded by the first script that contains
 * scripts of BullMQ, and by the first worker that starts: a program that only reads never loads it.
 */
export type Bull = typeof import("./bullmq.js");

let loaded: Bull | undefined;

export async function loadBull(): Promise<Bull> {
  loaded ??= await import("./bullmq.js");
  return loaded;
}

/** For callers that run after `loadBull`. */
export function bull(): Bull {
  if (!loaded) throw new Error("BullMQ is used before it was loaded.");
  return loaded;
}

/** The version of BullMQ that this process works with. */
export async function bullVersion(): Promise<string> {
  return (await loadBull()).bullVersion();
}
