import { AsyncLocalStorage } from "node:async_hooks";
import { format, inspect } from "node:util";
import type { Output, Stream } from "./output.js";

/** The other methods of the console (table, trace, assert, count, group) call these. */
const STREAMS = {
  log: "out",
  info: "out",
  debug: "out",
  dir: "out",
  dirxml: "out",
  warn: "err",
  error: "err",
} as const;
type Method = keyof typeof STREAMS;

const places = new AsyncLocalStorage<Output | undefined>();
let users = 0;
let restore: () => void = () => {};

/**
 * During a capture, copies everything that `work`, and the async calls it starts, print to `output`.
 * @param output undefined: discards the copy
 */
export function printingTo<T>(output: Output | undefined, work: () => T): T {
  // From the first use of such a storage on, each promise of the process costs more (before Node 24).
  return users === 0 ? work() : places.run(output, work);
}

/** Captures the console of this process until the returned function is called; it still prints as before. */
export function captureConsole(): () => void {
  if (users === 0) restore = patch(globalThis.console);
  users += 1;
  let released = false;
  return () => {
    if (released) return;
    released = true;
    users -= 1;
    if (users === 0) restore();
  };
}

function patch(target: Console): () => void {
  const undo = Object.entries(STREAMS).map(([name, stream]) => wrap(target, name as Method, stream));
  return () => {
    for (const one of undo) one();
  };
}

function wrap(target: Console, method: Method, stream: Stream): () => void {
  const original = target[method] as (...args: unknown[]) => void;
  const wrapped = (...args: unknown[]) => {
    original.apply(target, args);
    places.getStore()?.write(stream, method === "dir" ? inspect(args[0], args[1] ?? {}) : format(...args));
  };
  target[method] = wrapped;
  return () => {
    // Another patch on top of this one stays.
    if (target[method] === wrapped) target[method] = original;
  };
}
