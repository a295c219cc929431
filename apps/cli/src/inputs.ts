import type { OperationName } from "@carillon/ops";
import { HTTP_OPERATIONS, type HttpOperation, type InputField, inputFields } from "@carillon/ops/internal";
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

const KINDS = {
  ...{ any: "json", array: "list", boolean: "flag", duration: "duration", integer: "integer" },
  ...{ number: "number", object: "json", string: "text", time: "time", words: "words" },
} as const satisfies Record<InputField["kind"], Field["kind"]>;

/**
 * The operations, by name. Reads their schemas, with zod, for which `--help` cannot wait: bundle.mjs puts the values in the place of this
 * module.
 */
export const SHAPES = Object.fromEntries(HTTP_OPERATIONS.map((one) => [one.name, shapeOf(one)])) as Readonly<
  Record<OperationName, Shape>
>;

function shapeOf({ method, operation }: HttpOperation): Shape {
  const { summary, logs, input } = operation;
  const all = Object.entries(inputFields(input));
  const names = all.map(([name]) => name);
  const fields = all.map(([name, { kind, about, choices, required, nullable }]) => {
    const more = {
      ...(choices && { choices }),
      ...(required && { required: true as const }),
      ...(nullable && { none: true as const }),
    };
    return [name, { kind: KINDS[kind], about: helpOf(about, names), ...more }] satisfies [string, Field];
  });
  return {
    summary: summary.replaceAll("`", ""),
    by: method !== "GET" && logs !== false,
    fields: Object.fromEntries(fields),
  };
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
