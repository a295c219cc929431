import { setFlagsFromString } from "node:v8";

/** Whether the user has not sized the heap, in the arguments of Node or in `NODE_OPTIONS`. */
export function isUnsized(flags: readonly (string | undefined)[]): boolean {
  return !/[-_](space|heap)[-_]size|--optimize[-_]for[-_]size/.test(flags.join(" "));
}

// V8 sizes the heap by the memory of the machine: it lets garbage grow to several times the 35 MB that a console holds.
// Set before other modules are loaded, because loading them alone makes garbage of 30 MB.
if (isUnsized([...process.execArgv, process.env["NODE_OPTIONS"]])) setFlagsFromString("--optimize-for-size");
