#!/usr/bin/env node
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CarillonError, Client, connect, isCarillonError } from "@carillon/sdk";
import { type Logger, pino } from "pino";
import { createApp } from "./app.js";
import { newToken } from "./auth.js";
import { answerTo } from "./command-line.js";
import { type Config, cannotListen, readConfig, shortTokens } from "./environment.js";
import { EXIT } from "./exit-codes.js";

/** How long requests under way may take once the console is told to stop. */
const GRACE_MS = 3_000;
/** How much of a log that cannot be written is kept for later, in bytes. */
const UNWRITTEN_LOG = 64 * 1024;

async function main(config: Config): Promise<void> {
  const logger = pino({ name: "carillon-console", level: config.logLevel }, standardOutput());
  const token = config.token ?? newToken();
  const { client, connection } = open(config);
  watch(connection, logger);
  const { app, board } = createApp({ ...config, token, client, connection, logger });

  const server = createServer(app);
  const { port } = await listen(server, config);
  const url = `http://${urlHost(config.host)}:${port}`;
  logger.info({ port, url }, "listening");
  if (config.token === undefined) logger.info({ url: `${url}/?token=${token}` }, "sign in");
  for (const variable of shortTokens(config))
    logger.warn({ variable }, "a token is short: anybody might guess it");
  board.start();

  await signal();
  logger.info("stopping");
  await closeServer(server); // first: what is under way still needs Redis
  await board.close();
  await client.close();
  connection.disconnect();
  logger.info("stopped");
  process.exit(); // a call that waits for Redis holds the process for seconds more
}

/**
 * Where the log goes. Synchronous, which is not pino's default: that one tries for ever, at the exit, to write what a
 * reader that left, or a full disk, does not take. A log that cannot be written is no reason to end: lines get lost.
 */
function standardOutput() {
  return pino.destination({ dest: 1, sync: true, maxLength: UNWRITTEN_LOG }).on("error", () => {});
}

/** Neither waits for Redis. @throws `INVALID_OPTION` for a URL that is none */
function open({ connection, namespace }: Config) {
  try {
    // An edit here puts back the payload that is stored; whoever stored it has set the limit.
    const client = new Client({ connection, namespace, maxPayloadBytes: Number.MAX_SAFE_INTEGER });
    return { client, connection: connect(connection, "safe") };
  } catch (error) {
    if (!isCarillonError(error, "INVALID_OPTION") || error.field !== "connection") throw error;
    const remedy = error.remedy ?? "";
    throw new CarillonError("INVALID_OPTION", "not a Redis URL.", { field: "REDIS_URL", remedy });
  }
}

/** One line when Redis goes and one when it is back, whatever number of attempts lies between. */
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

/** @throws `INVALID_OPTION` where the port is taken, or there is no such address */
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
    // A second one of the same kind finds no listener and ends the process at once.
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
