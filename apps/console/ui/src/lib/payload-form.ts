import { isObject, same } from "./values.js";

/*
 * A form for the simple parts of a JSON Schema. The payload is the only state: fields read from it and write to it, and what the form
 * cannot show stays as it is.
 */

export type Payload = Readonly<Record<string, unknown>>;
/** Names of the properties from the payload down to a field: one, or two in a group. */
type Path = readonly string[];

export interface FormField {
  readonly path: Path;
  readonly kind: "text" | "number" | "choice" | "texts" | "group";
  readonly required: boolean;
  /** Description of the schema, and its default. */
  readonly hint?: string;
  /** Values of a choice. */
  readonly choices: readonly unknown[];
  /** Fields of a group. */
  readonly fields: readonly FormField[];
}

/** The parts of a JSON Schema that matter here. */
interface Schema {
  type?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  description?: string;
  default?: unknown;
}

/**
 * Fields of a payload as it is: those of its schema whose value, if it has one, fits their control. Undefined: there is no form, since the
 * payload is no object.
 */
export function formOf(schema: object, payload: unknown): FormField[] | undefined {
  const { type, properties } = schema as Schema;
  return type === "object" && properties && isObject(payload)
    ? fieldsOf(schema as Schema, payload, [])
    : undefined;
}

function fieldsOf({ properties = {}, required = [] }: Schema, payload: Payload, above: Path): FormField[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
    const field = fieldOf(schema, value, [...above, name], required.includes(name));
    return field ? [field] : [];
  });
}

function fieldOf(schema: Schema, value: unknown, path: Path, required: boolean): FormField | undefined {
  const hint = hintOf(schema);
  const rest = { path, required, choices: [], fields: [], ...(hint && { hint }) };
  const fits = (test: (value: unknown) => boolean) => value === undefined || test(value);
  const choices = choicesOf(schema);
  if (choices)
    return fits((one) => choices.some((choice) => same(choice, one)))
      ? { ...rest, kind: "choice", choices }
      : undefined;
  switch (schema.type) {
    case "string":
      return fits((one) => typeof one === "string" && !one.includes("\n"))
        ? { ...rest, kind: "text" }
        : undefined;
    case "number":
    case "integer":
      return fits((one) => typeof one === "number") ? { ...rest, kind: "number" } : undefined;
    case "array":
      return schema.items?.type === "string" && !choicesOf(schema.items) && fits(isLines)
        ? { ...rest, kind: "texts" }
        : undefined;
    case "object": {
      if (path.length > 1 || !schema.properties || !fits(isObject)) return undefined;
      const fields = fieldsOf(schema, (value ?? {}) as Payload, path);
      return fields.length > 0 ? { ...rest, kind: "group", fields } : undefined;
    }
    default:
      return undefined;
  }
}

function choicesOf({ type, enum: values, const: only, anyOf }: Schema): unknown[] | undefined {
  if (values) return values;
  if (only !== undefined) return [only];
  if (type === "boolean") return [true, false];
  const parts = anyOf?.map(choicesOf);
  return parts?.every((part) => part !== undefined) ? parts.flat() : undefined;
}

function hintOf({ description, default: value }: Schema): string | undefined {
  const text = value === undefined ? [] : [`Default: ${JSON.stringify(value)}.`];
  return [...(description ? [description] : []), ...text].join(" ") || undefined;
}

export function valueAt(payload: Payload, [name = "", ...below]: Path): unknown {
  const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
  return below.length === 0 ? value : isObject(value) ? valueAt(value, below) : undefined;
}

/** The payload with another value of a field; undefined: without it. A group that becomes empty stays. */
export function withValue(payload: Payload, [name = "", ...below]: Path, value: unknown): Payload {
  const before = payload[name];
  const to = below.length === 0 ? value : withValue(isObject(before) ? before : {}, below, value);
  const entries = Object.entries(payload).filter(([key]) => key !== name || to !== undefined);
  const isNew = to !== undefined && !Object.hasOwn(payload, name);
  // A spread would take the name __proto__ for the prototype.
  return Object.fromEntries(
    isNew ? [...entries, [name, to]] : entries.map(([key, one]) => [key, key === name ? to : one]),
  );
}

/** A value as a control shows it. */
export function shownIn({ kind }: FormField, value: unknown): string {
  if (value === undefined) return "";
  if (kind === "choice") return JSON.stringify(value);
  return kind === "texts" ? (value as string[]).join("\n") : String(value);
}

/** The value that was typed or chosen; undefined: none. The inverse of `shownIn`. */
export function typedIn({ kind, required }: FormField, text: string): unknown {
  if (text === "" && !(required && kind === "text")) return kind === "texts" && required ? [] : undefined;
  if (kind === "choice") return JSON.parse(text);
  if (kind === "texts") return text.split("\n");
  return kind === "number" ? Number(text) : text;
}

function isLines(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string" && !one.includes("\n"));
}
