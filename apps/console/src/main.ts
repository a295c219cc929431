#!/usr/bin/env node
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { CarillonError, Client, connect, isCarillonError } from "@carillon/sdk";
import { Store } from "@carillon/sdk/internal";
import { type Logger, pino } from "pino";
import { createApp } from "./app.js";
import { newToken } from "./auth.js";
import { answerTo } from "./command-line.js";
import { type Config, cannotListen, readConfig } from "./environment.js";
import { EXIT } from "./exit-codes.js";
import { consoleServer } from "./server.js";

/** How long pending requests may take once the console stops. */
const GRACE_MS = 3_000;
/** Most log text that is kept while it cannot be written, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

async function main(config: Config): Promise<void> {
  const logger = pino({ name: "carillon-console", level: config.logLevel }, standardOutput());
  const made = config.tokens.admin.length === 0 ? newToken() : undefined;
  const tokens = made === undefined ? config.tokens : { ...config.tokens, admin: [made] };
  const { client, store, connection } = open(config);
  watch(connection, logger);
  const { app, board } = createApp({ ...config, tokens, client, store, connection, logger });

  const server = consoleServer(app);
  const { port } = await listen(server, config);
  const url = `http://${urlHost(config.host)}:${port}`;
  logger.info({ port, url }, "listening");
  if (made !== undefined) logger.info({ url: `${url}/?token=${made}` }, "sign in");
  board.start();

  await signal();
  logger.info("stopping");
  await closeServer(server); // first: requests under way still need Redis
  await board.close();
  await store.close();
  connection.disconnect();
  logger.info("stopped");
  process.exit(); // a call that waits for Redis holds the process for seconds more
}

/**
 * Destination of the log. Synchronous, unlike pino's default, which at the exit tries for ever to write to a closed pipe or a
 * full disk. A log that cannot be written does not end the process: lines are lost.
 */
function standardOutput() {
  return pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG }).on("error", () => {});
}

/** Opens store and client without waiting for Redis. @throws `INVALID_OPTION` for an invalid URL */
function open({ connection, namespace }: Config) {
  try {
    // An edit here puts the stored payload back, which passed the limit of the client that stored it.
    const store = new Store({ connection, namespace });
    const client = new Client({
      store,
      from: `board ${hostname()}`,
      maxPayloadBytes: Number.MAX_SAFE_INTEGER,
    });
    return { client, store, connection: connect(connection, "safe") };
  } catch (error) {
    if (!isCarillonError(error, "INVALID_OPTION") || error.field !== "connection") throw error;
    const remedy = error.remedy ?? "";
    throw new CarillonError("INVALID_OPTION", "not a Redis URL.", { field: "REDIS_URL", remedy });
  }
}

/** Logs one line when Redis is lost and one when it is back, however many attempts lie between. */
function watch(connection: ReturnType<typeof connect>, logger: Logger): void {
  let down = false;
  connection.on("error", (error: Error) => {
    if (!down) logger.error({ error: error.message }, "Redis cannot be reached; trying again");
    down = true;
  });
  connection.on("ready", () => {
    if (down) logger.info("Redis is back");
    down = false;
  });
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
