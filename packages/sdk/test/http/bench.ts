import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Context, Json } from "@carillon/sdk";
import { onTestFinished } from "vitest";
import type { Guard, HttpResult, SignedRequest } from "../../src/http/index.js";
import { cert, key } from "./certificate.js";

export interface Received {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A real server on a free port of 127.0.0.1 that records its requests. */
export class Target {
  readonly received: Received[] = [];
  connections = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", () => {
      this.connections += 1;
    });
  }

  static async open(answer: RequestListener = (_, response) => response.end("done"), secure = false) {
    const listener: RequestListener = async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const { method, url, headers } = request;
      target.received.push({ method, url, headers, body });
      answer(request, response);
    };
    const server = secure ? createSecureServer({ cert, key }, listener) : createServer(listener);
    const target = new Target(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return target;
  }

  /** A server of a handler with Web-standard requests. */
  static async serving(answer: (request: Request) => Promise<Response>): Promise<Target> {
    const target: Target = await Target.open(async (_, response) => {
      const { method = "", url = "/", headers, body } = target.received.at(-1) as Received;
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      const asked = new Request(new URL(url, target.url), {
        method,
        headers: headers as Record<string, string>,
        signal: gone.signal,
        ...(body === "" ? {} : { body }),
      });
      const answered = await answer(asked);
      response.writeHead(answered.status).end(await answered.text());
    });
    return target;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/`;
  }

  /** The entry of `allow` that permits this server. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Closes it when the test is over. */
  ofTest(): this {
    onTestFinished(() => this.close());
    return this;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A guard that checks nothing, to show the effect of the real one. */
export const unguarded: Guard = async () => [{ address: "127.0.0.1", family: 4 }];

export function plain(url: string, rest: Partial<SignedRequest> = {}): SignedRequest {
  return { method: "GET", url, headers: {}, timeout: 10_000, maxResponseBytes: 1_000, ...rest };
}

export const KEY = "a key of more than sixteen characters";

/** The parts of a context that the handler uses. */
export function contextOf(rest: Partial<Context> = {}): Context & { lines: [string, object | undefined][] } {
  const lines: [string, object | undefined][] = [];
  return {
    occurrence: {
      key: "http/acme/ping@1767258000000",
      task: "ping",
      owner: "acme",
      queue: "http",
      nominal: 1_767_258_000_000,
      due: 1_767_258_000_000,
      enqueued: 1_767_258_000_004,
      generation: 1,
      trigger: "schedule",
      run: "ping@mjv0wsg0.1f0c",
    },
    idempotencyKey: "http/acme/ping@1767258000000",
    fence: 7,
    attempt: 1,
    timeLeft: () => Number.POSITIVE_INFINITY,
    signal: new AbortController().signal,
    log: (message, details) => void lines.push([message, details]),
    lines,
    ...rest,
  } as Context & { lines: [string, object | undefined][] };
}

/** Checks a payload as the worker does, and runs the handler. */
export async function perform(
  type: {
    payload: { "~standard": { validate(value: unknown): unknown } };
    handler(payload: never, context: Context): unknown;
  },
  payload: Json,
  context: Context = contextOf(),
): Promise<HttpResult> {
  const checked = (await type.payload["~standard"].validate(payload)) as {
    value?: unknown;
    issues?: unknown;
  };
  if (checked.issues) throw new Error(JSON.stringify(checked.issues));
  return (await type.handler(checked.value as never, context)) as HttpResult;
}

/** The error that a promise is rejected with. */
export async function failure(
  promise: Promise<unknown>,
): Promise<Error & { code?: string; status?: number }> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("It did not fail.");
}
