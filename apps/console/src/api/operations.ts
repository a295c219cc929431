import { HTTP_OPERATIONS, type HttpOperation, perform, statusOf } from "@carillon/ops/internal";
import type { Hono } from "hono";
import { z } from "zod";
import type { Env } from "../context.js";
import { type Endpoint, endpoint, NOTHING, route } from "./route.js";

/** Registers all operations, each at its method and path. */
export function operationRoutes(router: Hono<Env>): void {
  for (const path of new Set(HTTP_OPERATIONS.map(({ path }) => path))) {
    const operations = HTTP_OPERATIONS.filter((one) => one.path === path);
    const handlers = operations.map((one) => [one.method.toLowerCase(), endpointOf(one)] as const);
    route(router, path, Object.fromEntries(handlers));
  }
}

/** The operation checks its input, of which the path names some fields, and query or body the others. */
function endpointOf(one: HttpOperation): Endpoint {
  const { name, parts, statuses, operation } = one;
  const rest = operation.input.omit(
    Object.fromEntries(parts.map((part) => [part, true])) as Record<never, true>,
  );
  const reads = one.method === "GET";
  return endpoint(
    {
      ...(reads
        ? { query: rest }
        : { body: z.unknown(), checked: Object.keys(rest.shape).length > 0 ? rest : NOTHING }),
      ...(operation.output && { answer: operation.output }),
      status: statuses,
      about: { id: name, summary: operation.summary },
    },
    async ({ client, path, query, body }) => {
      const input = { ...(reads ? query : (body as object | undefined)), ...path };
      const answer = await perform(client, operation, input);
      return { status: statusOf(one, answer), body: answer };
    },
  );
}
