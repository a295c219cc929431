import { z } from "zod";

/** A field of an operation's input, as a command line or a dialog asks for it. */
export interface InputField {
  /** Kind of its value: `words` are one word or a list of some, `any` has no type in the schema. */
  readonly kind:
    | "any"
    | "array"
    | "boolean"
    | "duration"
    | "integer"
    | "number"
    | "object"
    | "string"
    | "time"
    | "words";
  /** Its description; "": none. */
  readonly about: string;
  /** The words that it, or each of its entries, can be. */
  readonly choices?: readonly string[];
  readonly nullable: boolean;
  readonly required: boolean;
}

type Schema = z.core.JSONSchema.JSONSchema;

/** The first of these types that a field allows decides its kind. */
const KINDS = ["time", "array", "object", "string", "integer", "number", "boolean"] as const;

export function inputFields(input: z.ZodObject): Record<string, InputField> {
  const { properties = {}, required = [] } = z.toJSONSchema(input, {
    ...{ io: "input", unrepresentable: "any" },
    override({ zodSchema, jsonSchema }) {
      if (zodSchema._zod.def.type === "date") jsonSchema.type = "time" as "string";
    },
  });
  const fields = Object.entries(properties as Record<string, Schema>).map(([name, schema]) => {
    const ways = (schema.anyOf ?? [schema]) as Schema[];
    const types = ways.flatMap(({ type }) => type as string);
    const choices = ways.find((one) => one.enum)?.enum as string[] | undefined;
    const field: InputField = {
      kind: kindOf(types, schema.anyOf !== undefined),
      about: schema.description ?? "",
      ...(choices && { choices }),
      nullable: types.includes("null"),
      required: required.includes(name),
    };
    return [name, field] as const;
  });
  return Object.fromEntries(fields);
}

/** @param several whether the schema has alternatives */
function kindOf(types: readonly string[], several: boolean): InputField["kind"] {
  const kind = KINDS.find((one) => types.includes(one));
  if (kind === "array" && several) return "words";
  return kind === "string" && types.includes("number") ? "duration" : (kind ?? "any");
}
