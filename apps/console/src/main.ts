#!/usr/bin/env node
import "./small-heap.js";

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CarillonError, Client, isCarillonError } from "@carillon/sdk";
import { pino } from "pino";
import { newToken } from "./auth.js";
import { answerTo } from "./command-line.js";
import { createConsole } from "./create.js";
import { type Config, cannotListen, readConfig } from "./environment.js";
import { EXIT } from "./exit-codes.js";
import { consoleServer } from "./server.js";

/** Time that pending requests may take once the console stops. */
const GRACE_MS = 3_000;
/** Most log text that is kept while it cannot be written, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

async function main(config: Config): Promise<void> {
  const logger = pino({ name: "carillon-console", level: config.logLevel }, standardOutput());
  const made = config.tokens.admin.length === 0 ? newToken() : undefined;
  const auth = made === undefined ? config.tokens : { ...config.tokens, admin: [made] };
  const { redact, basePath, traceUrl, trustedProxies } = config;
  const client = open(config);
  const console_ = createConsole({ client, auth, logger, basePath, redact, traceUrl, trustedProxies });

  const server = consoleServer(console_.handler);
  const { port } = await listen(server, config);
  const url = `http://${urlHost(config.host)}:${port}${basePath}`;
  logger.info({ port, url }, "listening");
  if (made !== undefined) logger.info({ url: `${url}/?token=${made}` }, "sign in");

  await signal();
  logger.info("stopping");
  await closeServer(server); // first: requests under way still need Redis
  await console_.close();
  await client.close();
  logger.info("stopped");
  process.exit(); // a call that waits for Redis would keep the process for seconds
}

/**
 * Destination of the log. Synchronous: pino's default would try for ever at the exit to write to a closed pipe or a
 * full disk. A log that cannot be written does not end the process: lines are lost.
 */
function standardOutput() {
  return pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG }).on("error", () => {});
}

/** Opens a client without waiting for Redis. @throws `INVALID_OPTION` for an invalid URL */
function open({ connection, namespace }: Config): Client {
  try {
    return new Client({ connection, namespace });
  } catch (error) {
    if (!isCarillonError(error, "INVALID_OPTION") || error.field !== "connection") throw error;
    const remedy = error.remedy ?? "";
    throw new CarillonError("INVALID_OPTION", "not a Redis URL.", { field: "REDIS_URL", remedy });
  }
}

/** @throws `INVALID_OPTION` if the port is taken, or the address does not exist */
function listen(server: Server, { host, port }: Config): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(cannotListen(error)));
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });
}

/** A name that a browser on this machine can open. */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function signal(): Promise<void> {
  return new Promise((resolve) => {
    // A second signal of the same kind finds no listener, and so ends the process at once.
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve());
  });
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const hard = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await closed;
  clearTimeout(hard);
}

function fail(error: unknown): never {
  const { code, message } = error as NodeJS.ErrnoException;
  const known = isCarillonError(error) || code !== undefined;
  console.error(`carillon-console: ${known ? message : ((error as Error).stack ?? error)}`);
  process.exit(isCarillonError(error) ? EXIT.config : EXIT.unexpected);
}

const answer = answerTo(process.argv.slice(2));
if (answer) {
  (answer.code === EXIT.stopped ? console.log : console.error)(answer.text);
  process.exit(answer.code);
}

try {
  await main(readConfig(process.env));
} catch (error) {
  fail(error);
}
