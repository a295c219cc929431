import { pino } from "pino";

/** Logger of nodes and workers: pino, or anything with these four methods. */
export interface Logger {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

/** Bytes that are kept while a log cannot be written; further lines are dropped. */
const UNWRITTEN_LOG = 64 * 1024;

/** The default of nodes and workers: pino, as JSON lines on stdout, from level info. */
export function defaultLogger(): Logger {
  // Synchronous: the last lines before an exit must not be lost or overtaken.
  const stdout = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG });
  // On a full disk or a closed pipe, lines are lost; tasks must not be.
  stdout.on("error", () => {});
  return pino({ name: "carillon" }, stdout);
}
