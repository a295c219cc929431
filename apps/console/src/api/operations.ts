import {
  HTTP_OPERATIONS,
  type HttpOperation,
  perform,
  type Redactor,
  statusOf,
} from "@carillon/ops/internal";
import { CarillonError } from "@carillon/sdk";
import type { Hono } from "hono";
import { z } from "zod";
import type { Env } from "../context.js";
import { API_PATH } from "../paths.js";
import { conditionsOf, failedPrecondition } from "./conditions.js";
import { withHidden } from "./hidden.js";
import { inTurn, type Turn } from "./in-turn.js";
import { type Endpoint, endpoint, NOTHING, route } from "./route.js";
import { SharedAnswers } from "./shared.js";

/** Registers all operations, each at its method and path. */
export function operationRoutes(router: Hono<Env>, redactor: Redactor): void {
  const parts = { redactor, turn: inTurn(), shared: new SharedAnswers() };
  const paths = new Map(HTTP_OPERATIONS.map(({ path, parts }) => [path, parts.length]));
  // `/runs/trends` before `/runs/:id`, which would take it.
  for (const [path] of [...paths].sort(([, a], [, b]) => a - b)) {
    const operations = HTTP_OPERATIONS.filter((one) => one.path === path);
    const handlers = operations.map((one) => [one.method.toLowerCase(), endpointOf(one, parts)]);
    route(router, path, Object.fromEntries(handlers));
  }
}

interface Parts {
  readonly redactor: Redactor;
  /** For operations that compute. */
  readonly turn: Turn;
  /** For reads. */
  readonly shared: SharedAnswers;
}

/** The operation checks its input, of which the path names some fields, and query or body the others. */
function endpointOf(one: HttpOperation, { redactor, turn, shared }: Parts): Endpoint {
  const { name, parts, statuses, operation } = one;
  const { input, body: whole, output, adminFields = [] } = operation;
  const reads = one.method === "GET";
  const rest = without(input, whole === undefined ? parts : [...parts, whole]);
  const described = Object.keys(rest.shape).length > 0 ? rest : NOTHING;
  const inQuery = reads || whole !== undefined;
  const read = reader(rest);
  return endpoint(
    {
      ...(inQuery && { query: z.unknown() }),
      ...(!reads && { body: z.unknown() }),
      checked: {
        query: inQuery ? described : NOTHING,
        body: whole === undefined ? (reads ? NOTHING : described) : (input.shape[whole] as z.ZodType),
      },
      ...(output && { answer: output }),
      status: statuses,
      about: { id: name, summary: operation.summary },
    },
    async ({ c, client, path, query, body, identity }) => {
      const given = {
        ...(inQuery && read(query as Record<string, unknown>)),
        ...(whole === undefined ? (body as object | undefined) : { [whole]: body }),
        ...path,
      } as Record<string, unknown>;
      const conditions = reads ? {} : conditionsOf(c, input.shape, given);
      Object.assign(given, conditions);
      const denied = identity.role !== "admin" && adminFields.find((field) => given[field] !== undefined);
      if (denied)
        throw new CarillonError("FORBIDDEN", `an operator may not give a ${denied}.`, {
          field: denied,
          remedy: "Leave it out, or sign in with the token of an admin.",
        });
      const run = async (isWanted: () => boolean) => {
        const full = reads ? given : await withHidden(redactor, client, given, input.shape);
        const work = () => perform(client, operation, full, {}, redactor.replacer);
        return operation.cost === "computes" ? turn(c, work, isWanted) : work();
      };
      const answer = await (reads
        ? shared.get(c, [client.owner, name, given], run)
        : run(() => !c.req.raw.signal.aborted).finally(() => shared.clear())
      ).catch((error: unknown) => {
        throw failedPrecondition(error, conditions);
      });
      const { revision } = Object(answer) as { revision?: unknown };
      if (reads && typeof revision === "string") c.header("ETag", JSON.stringify(revision));
      const isDry = given["dryRun"] === true;
      const location = reads || isDry ? undefined : locationOf(one, answer);
      return {
        status: statusOf(one, answer, isDry),
        body: answer,
        ...(location !== undefined && { location }),
      };
    },
  );
}

function without(input: z.ZodObject, fields: readonly string[]): z.ZodObject {
  return input.omit(Object.fromEntries(fields.map((field) => [field, true])) as Record<never, true>);
}

/** The address of a task or another thing that an answer names, if the operation's noun has a `get`. */
function locationOf({ noun }: HttpOperation, answer: unknown): string | undefined {
  const get = HTTP_OPERATIONS.find(({ name }) => name === `${noun}.get`);
  const { task, ...fields } = Object(answer) as Record<string, unknown>;
  const named = { ...Object(task), ...fields } as Record<string, unknown>;
  if (!get?.parts.every((part) => typeof named[part] === "string")) return undefined;
  return API_PATH + get.path.replace(/:(\w+)/g, (_, part: string) => String(named[part]));
}

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

function typesIn(schema: z.core.JSONSchema._JSONSchema | undefined): Set<unknown> {
  if (typeof schema !== "object") return new Set();
  const { type, anyOf = [] } = schema;
  return new Set([type, ...anyOf.flatMap((one) => [...typesIn(one)])].flat());
}
