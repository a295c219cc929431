import type { IncomingMessage, ServerResponse } from "node:http";
import type { Console } from "./create.js";

/** The parts of Fastify that are used here. */
interface Fastify {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(type: string, parser: () => Promise<undefined>): unknown;
  all(path: string, handler: (request: { raw: IncomingMessage }, reply: Reply) => unknown): unknown;
}

interface Reply {
  readonly raw: ServerResponse;
  hijack(): unknown;
}

/**
 * The console as a plugin for Fastify.
 *
 * @example
 * await app.register(fastifyConsole(ops), { prefix: "/ops/carillon" });
 */
export function fastifyConsole({ handler }: Pick<Console, "handler">): (app: Fastify) => Promise<void> {
  return async (app) => {
    // The console reads bodies itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", async () => undefined);
    for (const path of ["/", "/*"]) {
      app.all(path, (request, reply) => {
        reply.hijack();
        return handler(request.raw, reply.raw);
      });
    }
  };
}
