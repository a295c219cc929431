import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createConsole } from "@carillon/console";
import { Scheduler } from "@carillon/scheduler";
import { Client, readEnvironment } from "@carillon/sdk";
import { redisBinary, startRedis } from "@carillon/testing";
import type { DevOptions } from "../commands/dev.js";
import type { Output } from "../output.js";
import { Events } from "./events.js";
import { TaskFile } from "./task-file.js";

/** Port of clients whose address nobody has set. */
const REDIS_PORT = 6379;

/** Ends of what was started; the newest comes first. */
type Stops = (() => unknown)[];

/** Runs everything that tasks need, until a signal. @throws `INVALID_OPTION`, `REDIS_UNAVAILABLE` */
export async function dev(path: string | undefined, options: DevOptions, out: Output): Promise<void> {
  const file = path === undefined ? undefined : new TaskFile(path);
  const signal = firstSignal();
  const stops: Stops = [];
  try {
    await Promise.race([start(file, options, out, stops), signal]);
    await signal;
    await out.write("stopping; Ctrl-C again does not wait\n");
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function start(
  file: TaskFile | undefined,
  { io, port, ...options }: DevOptions,
  out: Output,
  stops: Stops,
): Promise<void> {
  const given = options.redis ?? io.env.REDIS_URL;
  const url = given || (await privateRedis(out, stops));
  const namespace = options.namespace ?? io.env.CARILLON_NAMESPACE;
  const env = { ...io.env, REDIS_URL: url, CARILLON_NAMESPACE: namespace };
  const settings = readEnvironment(env);
  const client = new Client(settings);
  stops.push(() => client.close());
  const events = new Events(client, out);

  const token = randomBytes(12).toString("hex");
  const pages = createConsole({ client, auth: { admin: [token] }, logger: events.logger });
  stops.push(() => pages.close());
  const server = createServer(pages.handler);
  const consolePort = await listen(server, port);
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await out.write(
    [
      `Console  http://127.0.0.1:${consolePort}/?token=${token}`,
      `Redis    ${given ? withoutPassword(url) : `${url} (its data is deleted at the end)`}`,
      `Tasks    ${file?.path ?? "none: give a file of task types, or start your worker with this REDIS_URL"}`,
      "\n",
    ].join("\n"),
  );

  const node = new Scheduler({ ...settings, logger: events.logger, unsafeRedis: "warn" });
  stops.push(() => node.stop());
  events.hear(node);
  await node.start();
  stops.push(events.follow());
  if (file) stops.push(file.work(env, events));
}

async function privateRedis(out: Output, stops: Stops): Promise<string> {
  await redisBinary({ install: (step) => void out.write(`${step}\n`) });
  const settings = { appendonly: true };
  // Not if another server has the port.
  const redis = await startRedis({ ...settings, port: REDIS_PORT }).catch(() => startRedis(settings));
  stops.push(() => redis.stop());
  return redis.url;
}

/** Listens on a port, or on any free one if that is taken. Returns it. */
async function listen(server: Server, wanted: number): Promise<number> {
  server.listen({ port: wanted, host: "127.0.0.1", exclusive: true });
  const taken = await once(server, "listening").then(
    () => false,
    () => true,
  );
  return taken ? listen(server, 0) : (server.address() as AddressInfo).port;
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/g, "//").replace(/\?.*/, "");
}

/**
 * The first signal. A later one ends this process at once; its Redis and its worker notice that. A terminal and npm both
 * send Ctrl-C, so signals within a second count as one.
 */
function firstSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const ask = () => {
      first ??= performance.now();
      resolve();
      if (performance.now() - first > 1_000) process.exit(130);
    };
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, ask);
    // npm may die without passing its signal on; then the parent changes.
    const parent = process.ppid;
    if (process.env["npm_lifecycle_event"] === undefined) return;
    setInterval(() => process.ppid === parent || ask(), 1_000).unref();
  });
}
