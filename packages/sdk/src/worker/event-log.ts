import type { Logger } from "@carillon/store";
import type { WorkerEvents } from "./options.js";

type RunEvents = Omit<WorkerEvents, "error">;
type Line = readonly [level: keyof Logger, message: string];

const LINES: { [Event in keyof RunEvents]: (about: RunEvents[Event][0]) => Line } = {
  started: () => ["debug", "attempt started"],
  generated: () => ["debug", "items generated"],
  dropped: () => ["info", "run dropped"],
  cancelled: () => ["info", "run cancelled before its start"],
  fenced: () => ["warn", "attempt fenced"],
  crashed: () => ["error", "run crashed"],
  settled: ({ outcome, error }) => {
    if (outcome === "retrying") return error ? ["warn", "attempt failed"] : ["info", "job handed back"];
    if (outcome === "cancelled") return ["info", "run cancelled"];
    return error ? ["error", "run failed"] : ["debug", "run ended"];
  },
};

/** Logs an event about a run: failures as warnings and errors, successes at debug level. */
export function logEvent<Event extends keyof RunEvents>(
  logger: Logger,
  event: Event,
  about: RunEvents[Event][0],
): void {
  const [level, message] = LINES[event](about);
  // Thrown values may hold anything, such as a request with its credentials.
  const { thrown: _, ...details } = about as { thrown?: unknown };
  logger[level](details, message);
}
