import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Operator, operatorOf } from "@carillon/ops";
import { Redactor } from "@carillon/ops/internal";
import { Client } from "@carillon/sdk";
import { Store } from "@carillon/sdk/internal";
import { eventually, type RedisServer } from "@carillon/testing";
import { pino } from "pino";
import { beforeAll } from "vitest";
import { emptied } from "../../../test/helpers.js";
import { openApi } from "../src/api/openapi.js";
import { apiRouter } from "../src/api/router.js";
import { type AppOptions, createApp } from "../src/app.js";
import type { Board } from "../src/bull-board.js";
import { consoleServer, nodeHandler } from "../src/server.js";
import { Conformance } from "./conformance.js";

export const ADMIN = "the-token-of-an-admin";
export const OPERATOR = "the-token-of-an-operator";
export const VIEWER = "the-token-of-a-viewer";

export const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

export interface Console {
  redis: RedisServer;
  client: Client;
  ops: Operator;
  board: Board;
  url: string;
  /** The log as text. */
  log(): string;
  /**
   * Answers in this process, which takes half the time of a request over HTTP to `url`. Checks API answers against the
   * OpenAPI document.
   */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** Sends a request with the token of an admin; a body is sent as JSON. */
  admin(method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }>;
  /** The same below /api/v1; returns the headers too. */
  api(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  stop(): Promise<void>;
}

interface ApiAnswer {
  status: number;
  headers: Headers;
  body: Record<string, unknown> & { error?: Answer["error"] };
}

/** Fields of API answers that the tests read. */
export interface Answer {
  error?: { code?: string; key?: string; message?: string; field?: string; remedy?: string };
  schedulers?: Array<Record<string, unknown> & { id: string; queueName: string }>;
  queues?: Array<Record<string, unknown> & { name: string }>;
  job?: { id: string; name: string; data: { payload: unknown; occurrence: Record<string, unknown> } };
}

/** @param redis default: the one that test files share, empty */
export async function startConsole(options: Partial<AppOptions> = {}, redis?: RedisServer): Promise<Console> {
  const server = redis ?? (await emptied("single"));
  return { redis: server, ...(await startOn(server.url, options)) };
}

/** The console of a test file, or of a group of tests. */
export function ownConsole(options?: Partial<AppOptions>, redis?: RedisServer): Console {
  const console_ = {} as Console;
  beforeAll(async () => {
    Object.assign(console_, await startConsole(options, redis));
    return () => console_.stop();
  });
  return console_;
}

/** A console on three masters. */
export async function startOnCluster(): Promise<Omit<Console, "redis">> {
  return startOn((await emptied("cluster")).url, {});
}

async function startOn(redisUrl: string, options: Partial<AppOptions>): Promise<Omit<Console, "redis">> {
  const store = new Store({ connection: redisUrl, namespace: "console-test", readyTimeout: 500 });
  const client = new Client({ store, maxPayloadBytes: Number.MAX_SAFE_INTEGER }); // as the program sets it
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const { app, board } = createApp({
    client,
    store,
    logger,
    auth: { admin: [ADMIN], operator: [OPERATOR], viewer: [VIEWER] },
    refreshEvery: 50,
    ...options,
  });
  const server = consoleServer(nodeHandler(app.fetch));
  const url = `http://127.0.0.1:${await listen(server)}`;
  await eventually(async () => {
    await board.refresh();
    return board.problem === undefined;
  });
  const ops = operatorOf(client);
  await eventually(async () => (await ops.names.list({ of: "queue" })).names);
  const incoming = { socket: { remoteAddress: "127.0.0.1" } } as IncomingMessage;
  const conformance = new Conformance(openApi(apiRouter(store, new Redactor([]))));
  const ask: Console["ask"] = async (path, init) => {
    const response = await app.fetch(new Request(url + path, init), { incoming });
    const [, route] = /^\/api\/v1(\/[^?]*)/.exec(path) ?? [];
    if (route !== undefined) {
      const sent = response.ok && typeof init?.body === "string" ? JSON.parse(init.body) : undefined;
      await conformance.check(init?.method ?? "GET", route, sent, response);
    }
    return response;
  };
  const call = async (method: string, path: string, body: unknown, more: Record<string, string>) => {
    const response = await ask(path, {
      method,
      headers: { authorization: `Bearer ${ADMIN}`, "content-type": "application/json", ...more },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const parsed = text === "" ? {} : (JSON.parse(text) as Answer & ApiAnswer["body"]);
    return { status: response.status, headers: response.headers, body: parsed };
  };
  return {
    ...{ client, ops, board },
    url,
    log: () => lines.join(""),
    ask,
    async admin(method, path, body) {
      const answer = await call(method, path, body, {});
      return { status: answer.status, body: answer.body };
    },
    api: (method, path, body, headers = {}) => call(method, `/api/v1${path}`, body, headers),
    async stop() {
      server.closeAllConnections();
      server.close();
      await board.close();
      await store.close();
    },
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** The session cookie of a sign-in, as a browser sends it back. */
export function sessionOf(response: Response): string {
  return response.headers.getSetCookie().map((line) => line.split(";")[0])[0] ?? "";
}
