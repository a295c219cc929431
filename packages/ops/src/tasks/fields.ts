import { isDeepStrictEqual } from "node:util";
import { invalid } from "@carillon/core/internal";

type Fields = Record<string, unknown>;

/** Changes of fields, by their path: names joined by dots. */
export interface FieldChanges {
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
  readonly unset?: readonly string[] | undefined;
  readonly add?: Readonly<Record<string, readonly unknown[]>> | undefined;
}

/** Names that would modify the prototype of all objects. */
const UNSAFE = new Set(["__proto__", "constructor", "prototype"]);

/**
 * A copy of a definition with fields set, removed, and lists extended by the entries that they lack. The schema checks the fields later.
 *
 * @throws `INVALID_OPTION` for a path that is not one, or that leads through a value without fields
 */
export function withFields(definition: object, { fields = {}, unset = [], add = {} }: FieldChanges): object {
  const copy = structuredClone(definition) as Fields;
  for (const [path, value] of Object.entries(fields)) {
    const [parent, name] = placeOf(copy, path, "fields");
    parent[name] = value;
  }
  for (const path of unset) {
    const [parent, name] = placeOf(copy, path, "unset");
    delete parent[name];
  }
  for (const [path, entries] of Object.entries(add)) {
    const [parent, name] = placeOf(copy, path, "add");
    const { [name]: list = [] } = parent;
    if (!Array.isArray(list)) throw invalid("add", `${path} is not a list.`, "Set it as a whole.");
    parent[name] = [
      ...list,
      ...entries.filter((entry) => !list.some((known) => isDeepStrictEqual(known, entry))),
    ];
  }
  return copy;
}

/** Creates missing objects on the path to a field that is being set. */
function placeOf(fields: Fields, path: string, how: keyof FieldChanges): [parent: Fields, name: string] {
  const names = path.split(".");
  if (names.some((name) => name === "" || UNSAFE.has(name)))
    throw invalid(
      how,
      `${path.slice(0, 100)} is not a field.`,
      "Name a field; join nested fields with dots.",
    );
  const name = names.pop() as string;
  let parent = fields;
  for (const [depth, each] of names.entries()) {
    if (how === "unset" && (parent[each] === undefined || parent[each] === null)) return [{}, name];
    parent[each] ??= {};
    const next = parent[each];
    if (typeof next !== "object" || next === null || Array.isArray(next)) {
      const whole = names.slice(0, depth + 1).join(".");
      throw invalid(how, `${whole} has no fields.`, `Set ${whole} as a whole.`);
    }
    parent = next as Fields;
  }
  return [parent, name];
}
