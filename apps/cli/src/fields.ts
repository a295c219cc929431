import type { InputTo, OperationName } from "@carillon/ops";
import type { TaskRef } from "@carillon/sdk";
import { Argument, InvalidArgumentError, Option } from "commander";
import { misuse } from "./failure.js";
import { type Field, SHAPES } from "./inputs.js";
import { kebab } from "./text.js";

export type FieldOf<Name extends OperationName> = keyof InputTo<Name> & string;

/** The value of an option, as it is typed: durations and times are texts. */
export type Typed<Value> = string extends Value
  ? string
  : [Extract<Value, readonly unknown[]>] extends [never]
    ? NonNullable<Value>
    : Extract<Value, readonly unknown[]>;

/** How a command takes the fields of an operation's input. */
export interface Taking<Name extends OperationName> {
  /** Other flags than those of the name: `{ limit: "-l, --limit <n>" }`. */
  readonly flags?: { readonly [Field in FieldOf<Name>]?: string };
  /** Other words than those of the schema, where a command gives a field another meaning. */
  readonly about?: { readonly [Field in FieldOf<Name>]?: string };
  /** Begins the words for each option: `of these: `. */
  readonly of?: string;
  /** A duration instead of a time is that long before now, the default, or from now. */
  readonly times?: "before" | "from";
}

const SHORT: Readonly<Record<string, string>> = { queue: "-q", tag: "-t", search: "-s", limit: "-n" };

/** Placeholders of values. Default: the name of the field. */
const VALUES: Readonly<Record<string, string>> = {
  ...{ integer: "n", number: "n", time: "time", duration: "duration", json: "json" },
  ...{ by: "name", node: "name", pausedBy: "name", note: "text", search: "text", overlap: "policy" },
  ...{ outcome: "outcomes", sort: "order", only: "which", missed: "rule", allowRemovals: "n" },
};

/** How an option takes several values. */
const MORE: { readonly [Kind in Field["kind"]]?: string } = { list: "; repeatable", words: "; several: a,b" };

const TIMES = {
  before: "2h before now, or ISO 8601, 09:00, yesterday",
  from: "2h from now, or ISO 8601, 14:00, tomorrow 09:00",
};

/** An operation in a sentence or more, to describe a command. */
export const summaryOf = (operation: OperationName) => SHAPES[operation].summary;

export function fieldsOf<Name extends OperationName>(operation: Name): FieldOf<Name>[] {
  return Object.keys(SHAPES[operation].fields) as FieldOf<Name>[];
}

export function optionsFor<Name extends OperationName>(
  operation: Name,
  names: readonly FieldOf<Name>[],
  { flags = {}, about = {}, of = "", times = "before" }: Taking<Name>,
): Option[] {
  const { fields } = SHAPES[operation];
  const [first] = names.filter((name) => fields[name]?.kind === "time");
  return names.map((name) => {
    const field = fields[name] as Field;
    const short = SHORT[name] === undefined ? "" : `${SHORT[name]}, `;
    const value = field.kind === "flag" ? "" : ` <${VALUES[name] ?? VALUES[field.kind] ?? kebab(name)}>`;
    const forms = name === first ? `: ${TIMES[times]}` : `, as --${kebab(first ?? "")}`;
    const words =
      field.kind === "time" ? withForms(field.about, forms) : `${field.about}${MORE[field.kind] ?? ""}`;
    const text = about[name] ?? `${of}${words}`;
    const option = new Option(flags[name] ?? `${short}--${kebab(name)}${value}`, text);
    option.attributeName = () => name; // whatever its flags
    if (field.choices) option.choices(field.choices);
    const read = readerOf(field, option.long?.slice(2) ?? name);
    return read ? option.argParser(read) : option;
  });
}

/** An argument of this field; an `id` is named after its noun, and a task's is `[owner/]id`. */
export function argumentOf<Name extends OperationName>(
  operation: Name,
  name: FieldOf<Name>,
  { about = {} }: Taking<Name>,
): Argument {
  const { fields } = SHAPES[operation];
  const field = fields[name] as Field;
  const isTask = name === "id" && fields["owner"] !== undefined;
  const noun = isTask ? "task" : operation.replace(/s\..*/, "");
  const shown = `${name === "id" ? noun : kebab(name)}${field.kind === "list" ? "..." : ""}`;
  const text = about[name] ?? (isTask ? TASK : field.about);
  const argument = new Argument(field.required ? `<${shown}>` : `[${shown}]`, text);
  const read = field.kind === "list" ? undefined : readerOf(field, argument.name());
  return read ? argument.argParser(read) : argument;
}

export const TASK = "[owner/]id; no owner means --owner, else system";

/** `[owner/]id` and the queue. */
export function taskRef(
  text: string,
  queue: string | undefined,
  owner: string | undefined,
): Exclude<TaskRef, string> {
  const slash = text.indexOf("/");
  return slash < 0
    ? { id: text, owner, queue }
    : { owner: text.slice(0, slash), id: text.slice(slash + 1), queue };
}

/** `begin; default now` with the forms of its times, `: 2h from now`: `begin: 2h from now; default now`. */
function withForms(about: string, forms: string): string {
  const [what = "", ...rest] = about.split("; ");
  const bare = forms.replace(/^[:,] /, "");
  if (what === "" || what.startsWith("default ")) return what ? `${bare}; ${what}` : bare;
  return [what + forms, ...rest].join("; ");
}

type Reader = (text: string, before: unknown) => unknown;

/** Makes the value of an option, or an argument, of its text; undefined: it is the text. */
function readerOf({ kind, choices, none }: Field, name: string): Reader | undefined {
  const known = (word: string) => {
    if (!choices || choices.includes(word)) return word;
    const several = kind === "words" ? ", or several with commas" : "";
    throw misuse(name, `got ${word}.`, `Use one of ${choices.join(", ")}${several}.`);
  };
  switch (kind) {
    case "integer":
      return wholeNumber;
    case "number":
      return (text) => (none && text === "none" ? null : Number(text));
    case "words":
      return (text, before = []) => [...(before as string[]), ...text.split(",").map(known)];
    case "list":
      return (text, before = []) => [...(before as string[]), text];
    case "json":
      return (text) => {
        try {
          return JSON.parse(text);
        } catch {
          throw misuse(name, "not JSON.", "Give JSON, in quotes that the shell keeps.");
        }
      };
    default:
      return choices && known;
  }
}

/** For commander: a whole number; its range is checked where it is used. */
export function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Give a whole number.");
}
