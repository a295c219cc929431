import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { misuse } from "./failure.js";

/**
 * The module that makes Node.js run a TypeScript file: tsx, if the file's project has it. Undefined: none is needed.
 *
 * @param file an absolute path
 * @param field of the command, in the error
 * @throws `INVALID_OPTION` if this Node.js runs no TypeScript, and the project has no tsx
 */
export function typescriptLoader(file: string, field: string): string | undefined {
  if (!/\.[cm]?tsx?$/.test(file)) return undefined;
  try {
    return pathToFileURL(createRequire(file).resolve("tsx")).href;
  } catch {
    if ((process.features as { typescript?: unknown }).typescript) return undefined;
    const what = `Node.js ${process.versions.node} runs no TypeScript.`;
    throw misuse(field, what, "Run `npm install --save-dev tsx`, or use Node.js 22.18 or newer.");
  }
}
