import { createHash } from "node:crypto";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { z } from "zod";
import type { TaskContract } from "../task-type.js";

/** Largest schema of a type, and of all types of a worker, in bytes of JSON. */
const [MOST, MOST_TOGETHER] = [16 * 1024, 256 * 1024];

/** Schemas as a worker publishes them. "": none. */
export interface Published {
  readonly text: string;
  readonly digest: string;
}

/**
 * JSON Schemas of the payloads, by type. A schema never refuses what the type itself accepts: rules that JSON Schema cannot say are left
 * out. Types without JSON Schema, and schemas that are too large, are left out too.
 */
export function publishedSchemas(types: readonly TaskContract[]): Published {
  const found: Record<string, object> = {};
  let left = MOST_TOGETHER;
  for (const { type, payload } of types) {
    const text = schemaText(payload);
    const size = Buffer.byteLength(text);
    if (size === 0 || size > Math.min(MOST, left)) continue;
    left -= size;
    found[type] = JSON.parse(text);
  }
  const text = left < MOST_TOGETHER ? JSON.stringify(found) : "";
  return { text, digest: text && createHash("sha256").update(text).digest("base64url").slice(0, 16) };
}

/** The schema of a payload before any transformation, as JSON. "": it has none. */
function schemaText(schema: StandardSchemaV1 | StandardJSONSchemaV1): string {
  try {
    if ("_zod" in schema) return JSON.stringify(z.toJSONSchema(schema as z.core.$ZodType, OF_ZOD));
    const { jsonSchema } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props>;
    if (!jsonSchema) return "";
    // Libraries differ in what they take for an e-mail address: formats are for people only.
    return JSON.stringify(jsonSchema.input({ target: "draft-2020-12" }), (key, value) =>
      key === "format" && typeof value === "string" ? undefined : value,
    );
  } catch {
    return "";
  }
}

const OF_ZOD = { io: "input", unrepresentable: "any", override: loosen } as const;

/** Takes out of zod's JSON Schema what its own parse does not ask for. */
function loosen({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}) {
  const { def } = zodSchema._zod;
  if (takesAny(zodSchema)) {
    for (const key of Object.keys(jsonSchema)) if (key !== "description") delete jsonSchema[key];
  } else if (def.type === "string" && changes(def)) {
    for (const key of ["minLength", "maxLength", "pattern", "format", "allOf"]) delete jsonSchema[key];
  } else if (def.type === "object" && jsonSchema.required) {
    jsonSchema.required = jsonSchema.required.filter((key) => !takesAny(def.shape[key] as z.core.$ZodTypes));
  }
}

/** Whether a schema makes its value out of any other, such as `z.coerce.number()` of "5", or has a value for wrong ones. */
function takesAny({ _zod: { def } }: z.core.$ZodTypes): boolean {
  if (def.type === "pipe") return def.in._zod.def.type === "transform";
  return def.type === "transform" || def.type === "catch" || ("coerce" in def && def.coerce === true);
}

/** Whether a text is changed before it is checked, as by `trim`, or checked by what JSON Schema does not know, such as `/a/i`. */
function changes({ checks = [] }: z.core.$ZodStringDef): boolean {
  return checks.some(({ _zod: { def } }) => {
    const { check, pattern } = def as { check: string; pattern?: RegExp };
    return check === "overwrite" || (pattern?.flags ?? "") !== "";
  });
}
