import type { Put } from "@carillon/sdk";
import { printable } from "../text.js";

/** To stderr: stdout holds results only. */
export function warn(where: string, warnings: Put["warnings"]): void {
  for (const { code, message } of warnings) {
    process.stderr.write(`carillon: warning: ${where}: ${printable(message)} [${code}]\n`);
  }
}

/** What to know about an answer that is none of it. */
export function note(text: string): void {
  process.stderr.write(`carillon: ${printable(text)}\n`);
}
