import type { Client } from "@carillon/sdk";
import type { Request, Response, Router } from "express";
import { z } from "zod";
import { RequestError } from "../errors.js";
import { type Identity, identityOf } from "../guard.js";
import { hostsOnly } from "../redact.js";
import { jsonBody } from "./body.js";
import { clientFor } from "./clients.js";
import { readAs } from "./fault.js";

/** An answer: a JSON body, or none. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** Address of the task or backfill. */
  readonly location?: string;
}

export interface Asked<Query = unknown, Body = unknown> {
  /** Acts for the token of the request. */
  readonly client: Client;
  /** The named parts of the path, decoded and not checked. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** Who asks. */
  readonly identity: Pick<Identity, "name" | "role" | "owners">;
}

/** Description of an endpoint in the OpenAPI document. */
export interface Described {
  readonly query: z.ZodObject;
  readonly body: z.ZodType;
  /** Shape of the answer; undefined: it has no body. */
  readonly answer: z.ZodType | undefined;
  /** Its status if the call succeeds: one of these. */
  readonly status: readonly number[];
  /** Media type of the answer. Default JSON. */
  readonly type?: string;
}

/** Reads a request, and answers it or rejects. */
export type Call = (req: Request, res: Response) => Promise<void>;

export interface Endpoint extends Call {
  readonly described: Described;
}

export const ok = (body: unknown): Reply => ({ status: 200, body });

export const NOTHING = z.strictObject({});

/**
 * One method of one path. A query or a body that it does not describe is refused, unless it is empty.
 * @param schemas `checked` describes a body that the client checks. `answer` and `status` (204 without an answer, else 200) describe the
 *   answer, and are not checked here.
 */
export function endpoint<
  Query extends z.ZodObject = typeof NOTHING,
  Body extends z.ZodObject | z.ZodUnknown = typeof NOTHING,
>(
  schemas: Partial<Pick<Described, "answer" | "status">> & {
    query?: Query;
    body?: Body;
    checked?: z.ZodType;
  },
  answer: (asked: Asked<z.output<Query>, z.output<Body>>) => Promise<Reply>,
): Endpoint {
  const { query = NOTHING, body = NOTHING, checked = body, answer: shape } = schemas;
  const { status = [shape === undefined ? 204 : 200] } = schemas;
  const call: Call = async (req, res) => {
    const client = clientFor(req, res);
    // A token that is bound to owners names one here: the client is bound to it.
    const { owner, ...rest } = req.query;
    const identity = identityOf(res);
    const asked = identity.owners ? rest : req.query;
    const reply = await answer({
      client,
      identity,
      path: req.params as Record<string, string>,
      query: readAs(query, { ...asked }) as z.output<Query>,
      body: (body instanceof z.ZodObject ? readAs(body, req.body ?? {}) : req.body) as z.output<Body>,
    });
    if (reply.location !== undefined) res.location(reply.location);
    res.status(reply.status);
    if (reply.body === undefined) res.end();
    else res.json(identity.role === "viewer" ? hostsOnly(reply.body) : reply.body);
  };
  return Object.assign(call, { described: { query, body: checked, answer: shape, status } });
}

const METHODS = ["get", "post", "put", "delete"] as const;

/** Registers the methods of one path; other methods are refused with the list of these. */
export function route(
  router: Router,
  path: string,
  handlers: Partial<Record<(typeof METHODS)[number], Endpoint>>,
): void {
  const at = router.route(path);
  const known = METHODS.filter((method) => handlers[method] !== undefined);
  for (const method of known) at[method](jsonBody, handlers[method]!);
  const allow = known
    .flatMap((method) => (method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()]))
    .join(", ");
  at.all((req, res) => {
    res.set("Allow", allow);
    throw new RequestError(405, `this path does not support ${req.method}.`, {
      field: "method",
      remedy: `Use ${allow}.`,
    });
  });
}
