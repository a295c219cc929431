#!/usr/bin/env node
import { pino } from "pino";
import { answerTo } from "./command-line.js";
import { readConfig } from "./config.js";
import { EXIT } from "./exit-codes.js";
import { runNode } from "./node.js";

/** Most log text that is kept while it cannot be written, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

const answer = answerTo(process.argv.slice(2));
if (answer) {
  (answer.code === EXIT.stopped ? console.log : console.error)(answer.text);
  process.exit(answer.code);
}

const { config, problems, warnings } = readConfig(process.env);
// Synchronous, unlike pino's default: otherwise the last line before the exit overtakes earlier ones.
const stdout = pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG });
// With a full disk or a closed pipe, log lines may be lost, but the node must go on.
stdout.on("error", () => {});
const logger = pino({ name: "carillon", level: config?.logLevel ?? "info" }, stdout);

for (const { variable, message } of warnings) logger.warn({ variable }, message);
for (const { variable, message } of problems) logger.fatal({ variable }, message);

process.on("uncaughtException", (error) => {
  logger.fatal({ err: error }, "unexpected error");
  process.exit(EXIT.unexpected);
});

// Everything is written by now, and an open handle must not keep the process alive.
process.exit(config ? await runNode(config, logger).catch(mistake) : EXIT.config);

/** Reports mistakes that only show when the settings are used. */
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
