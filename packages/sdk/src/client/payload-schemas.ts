import { isCarillonError } from "@carillon/core";
import { grouped, type Work } from "@carillon/core/internal";
import type { Coverage, Store } from "@carillon/store";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import { noPayload, validatePayload } from "../task-type.js";

/** A JSON Schema of a type's payloads, and the number of live workers of the queue that have it. */
export interface PayloadSchema {
  readonly schema: object;
  readonly workers: number;
}

/**
 * Schemas of a type that live workers of the queue publish; equal ones once, those of the worker that started last first. `without`: the
 * number of workers that have the type without a schema.
 */
export async function payloadSchemas(
  { registry }: Store,
  coverage: Coverage,
  { queue, type }: Work,
  fresh = false,
): Promise<{ schemas: PayloadSchema[]; without: number }> {
  const working = await coverage.working(fresh);
  const lists = await registry.schemasOf(working);
  const takers = working.filter(({ queues, types }) => queues.includes(queue) && types.includes(type));
  takers.sort((a, b) => b.started - a.started);
  const schemas = new Map<string, { schema: object; workers: number }>();
  let without = 0;
  for (const [digest, { length: workers }] of grouped(takers, (worker) => worker.schemas ?? "")) {
    const list = lists.get(digest);
    const schema = list && Object.hasOwn(list, type) ? list[type] : undefined;
    if (!schema) {
      without += workers;
      continue;
    }
    const text = JSON.stringify(schema);
    const before = schemas.get(text);
    schemas.set(text, { schema: before?.schema ?? schema, workers: (before?.workers ?? 0) + workers });
  }
  return { schemas: [...schemas.values()], without };
}

/**
 * Checks a payload against the schemas that workers of the queue publish. One that accepts it is enough: during a deployment there may be
 * two. Accepts everything while a worker takes the type without a schema, none is alive, or they cannot be read.
 *
 * @throws `INVALID_PAYLOAD` with the path, `REDIS_UNAVAILABLE`
 */
export async function assertFits(
  store: Store,
  coverage: Coverage,
  work: Work,
  payload: unknown,
): Promise<void> {
  const fault = async (fresh: boolean) => {
    const { schemas, without } = await payloadSchemas(store, coverage, work, fresh).catch(
      (error: unknown) => {
        // The put itself would wait for Redis as long again.
        if (isCarillonError(error, "REDIS_UNAVAILABLE")) throw error;
        return UNREADABLE;
      },
    );
    return without > 0 ? undefined : faultOf(work, schemas, payload);
  };
  if (!(await fault(false))) return;
  // A worker may have started since the list was cached.
  const now = await fault(true);
  if (now) throw now;
}

const UNREADABLE = { schemas: [], without: 1 };

/** The refusal of the first schema, if all refuse. */
async function faultOf({ queue, type }: Work, schemas: readonly PayloadSchema[], payload: unknown) {
  let first: unknown;
  for (const { schema } of schemas) {
    const compiled = compile(schema);
    if (!compiled) return undefined;
    try {
      await validatePayload({ type, queue, payload: compiled }, payload);
      return undefined;
    } catch (error) {
      if (!isCarillonError(error, "INVALID_PAYLOAD")) throw error;
      first ??= error;
    }
  }
  return first;
}

const COMPILED = new WeakMap<object, StandardSchemaV1 | null>();

/** Null: a JSON Schema that cannot be checked here, or a foreign object. */
function compile(schema: object): StandardSchemaV1 | null {
  const known = noPayload(schema) ?? COMPILED.get(schema);
  if (known !== undefined) return known;
  let compiled: StandardSchemaV1 | null = null;
  try {
    const limited = /"(pattern|patternProperties|\$ref)":/.test(JSON.stringify(schema)) ? inTime : now;
    const made = limited(() => z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema));
    const validate = (payload: unknown) => {
      try {
        const { success, error } = limited(() => made.safeParse(payload));
        return success ? { value: payload } : { issues: error.issues };
      } catch {
        COMPILED.set(schema, null);
        return { value: payload };
      }
    };
    compiled = { "~standard": { version: 1, vendor: "carillon", validate } };
  } catch {}
  COMPILED.set(schema, compiled);
  return compiled;
}

/** Most time for one payload, in ms. */
const PATIENCE = 500;
let sandbox: object | undefined;

/** Ends work that takes too long: a worker's pattern, or references that branch, may need hours. @throws then, and if nothing can end it */
function inTime<Answer>(work: () => Answer): Answer {
  const { createContext, runInContext } = process.getBuiltinModule("node:vm");
  sandbox ??= createContext({});
  return runInContext("work()", Object.assign(sandbox, { work }), { timeout: PATIENCE }) as Answer;
}

function now<Answer>(work: () => Answer): Answer {
  return work();
}
