#!/usr/bin/env node
import { pino } from "pino";
import { answerTo } from "./command-line.js";
import { readConfig } from "./config.js";
import { EXIT } from "./exit-codes.js";
import { runNode } from "./node.js";

/** How much of a log that cannot be written is kept for later, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

const answer = answerTo(process.argv.slice(2));
if (answer) {
  (answer.code === EXIT.stopped ? console.log : console.error)(answer.text);
  process.exit(answer.code);
}

const { config, problems, warnings } = readConfig(process.env);
// Synchronous, which is not pino's default: otherwise what is logged last before the exit overtakes what came before.
const stdout = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG });
// A full disk, a reader that left: lines get lost, tasks must not.
stdout.on("error", () => {});
const logger = pino({ name: "carillon", level: config?.logLevel ?? "info" }, stdout);

for (const { variable, message } of warnings) logger.warn({ variable }, message);
for (const { variable, message } of problems) logger.fatal({ variable }, message);

process.on("uncaughtException", (error) => {
  logger.fatal({ err: error }, "unexpected error");
  process.exit(EXIT.unexpected);
});

// Nothing is left to write, and no open handle can hold the process.
process.exit(config ? await runNode(config, logger).catch(mistake) : EXIT.config);

/** What only shows when the settings are used. */
function mistake(error: unknown): number {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "listen" || syscall === "getaddrinfo") {
    const taken = code === "EADDRINUSE" || code === "EACCES";
    const variable = taken ? "CARILLON_PORT" : "CARILLON_HOST";
    const remedy = taken
      ? "Choose another port; 0 means any free one."
      : "Give an address of this machine, or 0.0.0.0 for all.";
    logger.fatal({ variable, code }, `${variable}: cannot listen: ${(error as Error).message}. ${remedy}`);
    return EXIT.config;
  }
  logger.fatal({ err: error }, "unexpected error");
  return EXIT.unexpected;
}
