import type { InputTo, OperationName } from "@carillon/ops";
import { useMe } from "./me.js";
import { isoTime, typedTime } from "./time.js";
import { same, wordsIn } from "./values.js";

/** A field of an operation's input; one without a control of its own is typed as a text. */
export interface FormField {
  readonly kind: "array" | "boolean" | "choice" | "integer" | "number" | "object" | "string" | "time";
  /** The names that it holds one or several of: `owner`. */
  readonly of?: string;
  /** Its description in the schema. */
  readonly about?: string;
  readonly choices?: readonly string[];
  /** Without a value, it is null. */
  readonly nullable?: boolean;
  readonly required?: boolean;
}

/** An operation as its dialog needs it. */
interface OperationForm {
  readonly role: "viewer" | "operator" | "admin";
  readonly reach: "owner" | "local" | "namespace";
  readonly fields: Readonly<Record<string, FormField>>;
}

export type FieldOf<Name extends OperationName> = keyof InputTo<Name> & string;

declare const OPERATION_FORMS: Readonly<Record<string, OperationForm>>;
const FORMS = OPERATION_FORMS;

/** The form of an operation that is not a GET; `vite.config.ts` makes it from the declaration. */
export function formOf(name: OperationName): OperationForm {
  return FORMS[name]!;
}

/** Whether the person may call an operation. */
export function useMay(name: OperationName): boolean {
  const { act, define, wide } = useMe();
  const { role, reach } = formOf(name);
  return { viewer: true, operator: act, admin: define }[role] && (wide || reach === "owner");
}

/** The value of a field as its control has it. Undefined: the field is left out. */
export function readField(
  { kind, of, nullable, required }: FormField,
  typed: unknown,
  zone: string,
): unknown {
  if (kind === "object") return nullable && same(typed, {}) ? null : typed;
  if (kind === "boolean") return typed === true || undefined;
  const text = String(typed ?? "").trim();
  if (kind === "array") {
    const list = of ? wordsIn(text) : text.split(/\s*\n\s*/).filter(Boolean);
    return list.length > 0 || required ? list : undefined;
  }
  if (text === "") return nullable ? null : required ? "" : undefined;
  if (kind === "time") return isoTime(typedTime(text, zone));
  // The server refuses what is not a number.
  return (kind === "integer" || kind === "number") && !Number.isNaN(Number(text)) ? Number(text) : text;
}
