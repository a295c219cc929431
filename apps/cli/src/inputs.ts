import type { OperationName } from "@carillon/ops";
import { HTTP_OPERATIONS, type HttpOperation } from "@carillon/ops/internal";
import { kebab } from "./text.js";

/** A field of an operation's input, as an option or an argument. */
export interface Field {
  /** `words` and `list` hold several; a `time` is read in the zone of this machine. */
  readonly kind: "flag" | "integer" | "number" | "time" | "duration" | "words" | "list" | "json" | "text";
  /** For help: `most tasks`. */
  readonly about: string;
  readonly choices?: readonly string[];
  readonly required?: true;
  /** `none` is a value of it: null. */
  readonly none?: true;
}

/** An operation as the command line needs it. */
export interface Shape {
  readonly summary: string;
  /** Its author can be named: it changes something. */
  readonly by: boolean;
  readonly fields: Readonly<Record<string, Field>>;
}

/**
 * The operations, by name. Reads their schemas, with zod, for which `--help` cannot wait: bundle.mjs puts the values in the place of this
 * module.
 */
export const SHAPES = Object.fromEntries(HTTP_OPERATIONS.map((one) => [one.name, shapeOf(one)])) as Readonly<
  Record<OperationName, Shape>
>;

type Json = ReturnType<HttpOperation["operation"]["input"]["toJSONSchema"]>;

function shapeOf({ method, operation }: HttpOperation): Shape {
  const { properties = {}, required = [] } = operation.input.toJSONSchema({
    io: "input",
    unrepresentable: "any",
  });
  const names = Object.keys(properties);
  const fields = Object.entries(properties as Record<string, Json>).map(([name, json]) => {
    const choices = choicesOf(json);
    const about = helpOf(json.description ?? "", names);
    const more = {
      ...(choices && { choices }),
      ...(required.includes(name) && { required: true as const }),
      ...(Array.isArray(json.type) && json.type.includes("null") && { none: true as const }),
    };
    return [name, { kind: kindOf(json), about, ...more }] satisfies [string, Field];
  });
  const { summary, logs } = operation;
  return {
    summary: summary.replaceAll("`", ""),
    by: method !== "GET" && logs !== false,
    fields: Object.fromEntries(fields),
  };
}

function kindOf({ type, anyOf }: Json): Field["kind"] {
  if (anyOf) return anyOf.some((one) => (one as Json).type === "array") ? "words" : "time";
  if (Array.isArray(type))
    return type.includes("string") ? "duration" : type.includes("number") ? "number" : "json";
  if (type === "boolean") return "flag";
  if (type === "array") return "list";
  if (type === "integer" || type === "number") return type;
  return type === "string" ? "text" : "json";
}

/** The words that a field, or each of its entries, can be. */
function choicesOf({ enum: words, anyOf = [] }: Json): string[] | undefined {
  return (words ?? (anyOf as Json[]).find((one) => one.enum)?.enum) as string[] | undefined;
}

/** `Most jobs. Default: none.` as help says it: `most jobs; default none`. Names of fields become those of options. */
function helpOf(sentences: string, fields: readonly string[]): string {
  return sentences
    .replace(/\.$/, "")
    .replace(
      /(^|\. )([A-Z])(?![A-Z])/g,
      (_, start: string, letter: string) => `${start && "; "}${letter.toLowerCase()}`,
    )
    .replace(/default: /g, "default ")
    .replace(/`?\bnull\b`?/g, "none")
    .replace(/`(\w[^`]*)`/g, (_, name: string) => (fields.includes(name) ? `--${kebab(name)}` : name))
    .replaceAll("`", "");
}
