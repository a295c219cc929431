import { redactorOf } from "../redact.js";
import type { Notes } from "./imported.js";

interface FieldRule {
  readonly rule: string;
  readonly values: readonly string[];
  readonly why: string | undefined;
}

/** All fields that another system can store in one object. */
export interface FieldTable {
  readonly rules: ReadonlyMap<string, FieldRule>;
  readonly inner: Readonly<Record<string, FieldTable>>;
}

const SECRETS = redactorOf({});
const LINE = /^\s*(kept|record|dropped|refused): (.+?)(?: = (.+?))?(?: -- (.+))?$/;

/**
 * A table of lines `RULE: NAMES = VALUES -- REASON`. Rules:
 * - `kept`: becomes part of the task. With VALUES, any other value refuses the schedule.
 * - `record`: bookkeeping of the other system, ignored.
 * - `dropped`: reported with the REASON, unless it has one of the VALUES.
 * - `refused`: refuses the schedule for the REASON, unless it has one of the VALUES.
 *
 * A field without a line refuses the schedule by name.
 * @param inner tables of fields that are objects, or lists of objects
 */
export function fieldTable(lines: string, inner: Readonly<Record<string, FieldTable>> = {}): FieldTable {
  const rules = lines
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [, rule = "", names = "", values, why] = LINE.exec(line) ?? [];
      return names.split(" ").map((name) => [name, { rule, values: values?.split(" ") ?? [], why }] as const);
    });
  return { rules: new Map(rules), inner };
}

/** Notes each field that is not kept, and refuses the schedule, by the rules of the table. */
export function readFields(given: unknown, table: FieldTable, notes: Notes, at = ""): void {
  for (const [name, value] of [given].flat().flatMap((one) => Object.entries(one ?? {}))) {
    if (["null", '""', "{}", "[]"].includes(JSON.stringify(value) ?? "null")) continue;
    const [text = ""] = Object.values(SECRETS.shown({ [name]: value }) as object).map((one) =>
      JSON.stringify(one),
    );
    const { rule, values = [], why } = table.rules.get(name) ?? {};
    // Databases write numbers and booleans as text.
    const [among, shown] = [values.includes(String(value)), `${name}: ${text.slice(0, 200)}`];
    const inner = Object.hasOwn(table.inner, name) ? table.inner[name] : undefined;
    if (inner) readFields(value, inner, notes, `${at}${name}.`);
    else if (!rule) notes.refuse(`The field ${at}${shown} is not known: remove it, and see to it yourself.`);
    else if (rule === "kept" && values.length > 0 && !among)
      notes.refuse(`The value ${at}${shown} is not known; known are ${values.join(", ")}.`);
    else if (rule === "dropped" && !among) notes.add("DROPPED", `${shown} is left out: ${why}`);
    else if (rule === "refused" && !among) notes.refuse(`${at}${shown}: ${why}`);
  }
}
