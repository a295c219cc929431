import { HTTP_OPERATIONS, type HttpOperation, perform, statusOf } from "@carillon/ops/internal";
import { CarillonError } from "@carillon/sdk";
import type { Hono } from "hono";
import { z } from "zod";
import type { Env } from "../context.js";
import { API_PATH } from "../paths.js";
import type { inTurn } from "./in-turn.js";
import { type Endpoint, endpoint, NOTHING, route } from "./route.js";

/** Registers all operations, each at its method and path. @param turn for those that compute */
export function operationRoutes(router: Hono<Env>, turn: ReturnType<typeof inTurn>): void {
  for (const path of new Set(HTTP_OPERATIONS.map(({ path }) => path))) {
    const operations = HTTP_OPERATIONS.filter((one) => one.path === path);
    const handlers = operations.map((one) => {
      const endpoint = endpointOf(one);
      return [
        one.method.toLowerCase(),
        one.operation.cost === "computes" ? turn(endpoint) : endpoint,
      ] as const;
    });
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
  const described = Object.keys(rest.shape).length > 0 ? rest : NOTHING;
  const kept = HTTP_OPERATIONS.find(({ method, path }) => method === "GET" && path === `/${one.noun}/:id`);
  const read = reads ? reader(rest) : undefined;
  return endpoint(
    {
      ...(reads ? { query: ANY_QUERY } : { body: z.unknown() }),
      checked: reads ? { query: described } : { body: described },
      ...(operation.output && { answer: operation.output }),
      status: statuses,
      about: { id: name, summary: operation.summary },
    },
    async ({ client, path, query, body }) => {
      const input = { ...(read ? read(query) : (body as object | undefined)), ...path };
      const answer = await perform(client, operation, input);
      const { id } = Object(answer) as { id?: string };
      return {
        status: statusOf(one, answer),
        body: answer,
        ...(!reads && id !== undefined && kept && { location: API_PATH + kept.path.replace(":id", id) }),
      };
    },
  );
}

const ANY_QUERY = z.looseObject({});

/** Reads query parameters, which are text, as the numbers, booleans and lists that a schema describes. */
function reader(schema: z.ZodObject): (query: Record<string, unknown>) => Record<string, unknown> {
  const { properties = {} } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return (query) =>
    Object.fromEntries(
      Object.entries(query).map(([field, given]) => {
        const types = typesIn(properties[field]);
        if (types.has("array")) return [field, [given].flat().flatMap((text) => String(text).split(","))];
        if (Array.isArray(given))
          throw new CarillonError("INVALID_OPTION", "given more than once.", { field });
        const text = String(given);
        if ((types.has("integer") || types.has("number")) && /^\d{1,15}$/.test(text))
          return [field, Number(text)];
        if (types.has("boolean") && /^(true|false)$/.test(text)) return [field, text === "true"];
        return [field, text];
      }),
    );
}

/** The types of a JSON Schema and of its alternatives. */
function typesIn(schema: z.core.JSONSchema._JSONSchema | undefined): Set<unknown> {
  if (typeof schema !== "object") return new Set();
  const { type, anyOf = [] } = schema;
  return new Set([type, ...anyOf.flatMap((one) => [...typesIn(one)])].flat());
}
