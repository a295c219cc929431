import { parseInput } from "@carillon/ops/internal";
import type { Client } from "@carillon/sdk";
import type { Hono } from "hono";
import { z } from "zod";
import { type Ctx, type Env, json, type Person, queryOf, type Site } from "../context.js";
import { RequestError } from "../errors.js";
import { jsonBody } from "./body.js";
import { clientFor } from "./clients.js";

/** An answer: a JSON body, or none. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** Address of the task or backfill. */
  readonly location?: string;
}

export interface Asked<Query = unknown, Body = unknown> {
  /** The request. */
  readonly c: Ctx;
  /** A client with the rights of the request's token. */
  readonly client: Client;
  /** The named parts of the path, decoded and not checked. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The sender of the request. */
  readonly identity: Person;
  readonly site: Site;
}

/** Description of an endpoint in the OpenAPI document. */
export interface Described {
  readonly query: z.ZodObject;
  readonly body: z.ZodType;
  /** Shape of the answer; undefined: it has no body. */
  readonly answer: z.ZodType | undefined;
  /** Status of a successful call: one of these. */
  readonly status: readonly number[];
  /** Media type of the answer. Default JSON. */
  readonly type?: string;
  /** The name of the operation, and a sentence about it. */
  readonly about?: { readonly id: string; readonly summary: string };
}

/** Reads a request, and answers or rejects it. */
export type Call = (c: Ctx) => Promise<Response>;

export interface Endpoint extends Call {
  readonly described: Described;
}

export const ok = (body: unknown): Reply => ({ status: 200, body });

export const NOTHING = z.strictObject({});

/**
 * One method of one path. A query or a body that it does not describe is refused, unless it is empty.
 * @param schemas `checked` describes a query or a body that the operation checks. `answer` and `status` (204 without an answer, else 200) describe the
 *   answer, and are not checked here.
 */
export function endpoint<
  Query extends z.ZodObject | z.ZodUnknown = typeof NOTHING,
  Body extends z.ZodObject | z.ZodUnknown = typeof NOTHING,
>(
  schemas: Partial<Pick<Described, "answer" | "status" | "about">> & {
    query?: Query;
    body?: Body;
    checked?: Partial<Pick<Described, "query" | "body">>;
  },
  answer: (asked: Asked<z.output<Query>, z.output<Body>>) => Promise<Reply>,
): Endpoint {
  const { query = NOTHING, body = NOTHING, checked, answer: shape, about } = schemas;
  const { status = [shape === undefined ? 204 : 200] } = schemas;
  const call: Call = async (c) => {
    const client = clientFor(c);
    // A token that is bound to owners names one here: the client is bound to it.
    const { owner, ...rest } = queryOf(c);
    const { identity, site } = c.var;
    const reply = await answer({
      c,
      client,
      identity,
      site,
      path: c.req.param() as Record<string, string>,
      query: parsed(query, identity.owners ? rest : queryOf(c)) as z.output<Query>,
      body: parsed(body, c.var.body) as z.output<Body>,
    });
    if (reply.location !== undefined) c.header("Location", site.basePath + reply.location);
    if (reply.body === undefined) return c.body(null, reply.status as 204);
    return json(c, reply.body, reply.status);
  };
  return Object.assign(call, {
    described: {
      query: query as z.ZodObject,
      body,
      ...checked,
      answer: shape,
      status,
      ...(about && { about }),
    },
  });
}

/** Parses what an endpoint checks itself; the rest passes. */
function parsed<Schema extends z.ZodObject | z.ZodUnknown>(schema: Schema, given: unknown): z.output<Schema> {
  return (schema instanceof z.ZodObject ? parseInput(schema, given ?? {}) : given) as z.output<Schema>;
}

const METHODS = ["get", "post", "put", "delete"] as const;

/** Registers the methods of one path; other methods are refused with the list of these. */
export function route(
  router: Hono<Env>,
  path: string,
  handlers: Partial<Record<(typeof METHODS)[number], Endpoint>>,
): void {
  const known = METHODS.filter((method) => handlers[method] !== undefined);
  for (const method of known) router[method](path, jsonBody, handlers[method]!);
  const allow = known
    .flatMap((method) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]))
    .join(", ");
  router.all(path, (c) => {
    c.header("Allow", allow);
    throw new RequestError(405, `this path does not support ${c.req.method}.`, {
      field: "method",
      remedy: `Use ${allow}.`,
    });
  });
}
