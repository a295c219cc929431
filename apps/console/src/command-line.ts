import { readFileSync } from "node:fs";
import { EXIT } from "./exit-codes.js";

const USAGE = `Usage: carillon-console

A page over all queues of a namespace, and the HTTP API. It takes no arguments: what it is to do is in the environment.
REDIS_URL is required. All variables, with their defaults, are in README.md of this package.`;

/** Text to print instead of starting, and the exit code. Undefined if there are no arguments. */
export function answerTo([argument]: readonly string[]): { text: string; code: number } | undefined {
  if (argument === undefined) return undefined;
  if (argument === "--help" || argument === "-h") return { text: USAGE, code: EXIT.stopped };
  if (argument === "--version" || argument === "-V") return { text: version(), code: EXIT.stopped };
  return { text: `carillon-console: got ${JSON.stringify(argument)}.\n\n${USAGE}`, code: EXIT.config };
}

export function version(): string {
  const file = new URL("../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
