import type { Put } from "@carillon/sdk";
import { printable } from "../text.js";

/** To stderr: stdout holds results only. */
export function warn(where: string, warnings: Put["warnings"]): void {
  for (const { code, message } of warnings) {
    process.stderr.write(`carillon: warning: ${where}: ${printable(message)} [${code}]\n`);
  }
}
