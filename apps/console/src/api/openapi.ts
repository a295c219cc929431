import { STATUS_CODES } from "node:http";
import { CarillonError } from "@carillon/sdk";
import { ERROR_CODES } from "@carillon/sdk/internal";
import type { Hono } from "hono";
import { z } from "zod";
import { version } from "../command-line.js";
import type { Env } from "../context.js";
import { type Described, type Endpoint, endpoint, NOTHING, ok } from "./route.js";

type Json = Record<string, unknown>;

const ERROR = z
  .object({
    error: z.object({
      code: z.enum(ERROR_CODES),
      message: z.string(),
      field: z.string().optional(),
      remedy: z.string().optional(),
    }),
  })
  .meta({ id: "Error" });

/** The OpenAPI 3.1 document of a router and its schemas, made when it is first asked for. */
export function openApiEndpoint(router: Pick<Hono<Env>, "routes">): Endpoint {
  let document: Json | undefined;
  return endpoint({ answer: z.looseObject({}) }, async () => {
    document ??= openApi(router);
    return ok(document);
  });
}

export function openApi(router: Pick<Hono<Env>, "routes">): Json {
  const schemas = new Schemas();
  const error = schemas.add(ERROR);
  const paths: Record<string, Json> = {};
  for (const { path: template, method, handler } of router.routes) {
    const { described } = handler as Partial<Endpoint>;
    if (!described) continue;
    const path = template.replace(/:(\w+)/g, "{$1}");
    const name = method.toLowerCase();
    paths[path] = { ...paths[path], [name]: operation(name, path, described, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Carillon",
      version: version(),
      description:
        "The same roles, errors and limits hold for all calls: see docs/http-api.md. A token that is bound to several owners names one with `owner` in the query.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    // Relative to the address of this document, wherever the console is mounted.
    servers: [{ url: "../v1" }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      responses: {
        Error: { description: errorText(), content: { "application/json": { schema: error } } },
      },
      schemas: schemas.named,
    },
  };
}

function operation(method: string, path: string, described: Described, schemas: Schemas): Json {
  const { query, body, answer, status, type = "application/json", about } = described;
  const words = path.split("/").filter((part) => part !== "");
  const name = words.map((word) =>
    word.replace(/\W*(\w)(\w*)\W*/g, (_, first, rest) => first.toUpperCase() + rest),
  );
  const content = answer && { content: { [type]: { schema: schemas.add(answer) } } };
  const error = { $ref: "#/components/responses/Error" };
  const parameters = [...pathParameters(words), ...queryParameters(query, schemas)];
  return {
    operationId: about?.id ?? method + name.join(""),
    ...(about && { summary: about.summary }),
    tags: [words[0]],
    ...(parameters.length > 0 && { parameters }),
    ...(body !== NOTHING && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { "application/json": { schema: schemas.add(body) } },
      },
    }),
    responses: {
      ...Object.fromEntries(status.map((code) => [code, { description: STATUS_CODES[code], ...content }])),
      "4XX": error,
      "5XX": error,
    },
  };
}

function pathParameters(words: readonly string[]): Json[] {
  return words
    .filter((word) => word.startsWith("{"))
    .map((word) => ({ name: word.slice(1, -1), in: "path", required: true, schema: { type: "string" } }));
}

function queryParameters(query: z.ZodObject, schemas: Schemas): Json[] {
  const { properties = {}, required = [] } = schemas.add(query) as { properties?: Json; required?: string[] };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    schema,
    ...(required.includes(name) && { required: true }),
  }));
}

/** `400 INVALID_TASK, …` */
function errorText(): string {
  const byStatus = new Map<number, string[]>();
  for (const code of ERROR_CODES) {
    const { statusCode } = new CarillonError(code, "");
    byStatus.set(statusCode, [...(byStatus.get(statusCode) ?? []), code]);
  }
  const lines = [...byStatus].sort(([x], [y]) => x - y);
  return lines.map(([status, codes]) => `${status}: ${codes.join(", ")}.`).join("\n");
}

/** JSON Schemas, with those that have an `id` kept once. */
class Schemas {
  readonly named: Json = {};

  add(schema: z.ZodType): Json {
    // Uses the input form for answers too, so that their objects may have more fields.
    const made = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
    const text = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/');
    const { $schema: _, $defs = {}, ...rest } = JSON.parse(text) as Json & { $defs?: Json };
    Object.assign(this.named, $defs);
    return rest;
  }
}
