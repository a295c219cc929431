import { misuse } from "./failure.js";

type Fields = Record<string, unknown>;

/** Names that would modify the prototype of all objects. */
const UNSAFE = new Set(["__proto__", "constructor", "prototype"]);

/**
 * A copy of `definition` with fields set (`name=value`, nested names joined by dots) and removed. The schema checks the fields
 * later.
 *
 * @throws `INVALID_OPTION` for an argument that is not an assignment, or a path through a value without fields
 */
export function edited(definition: object, set: readonly string[], unset: readonly string[]): object {
  const copy = JSON.parse(JSON.stringify(definition)) as Fields;
  for (const text of set) {
    const at = text.indexOf("=");
    if (at < 1) throw misuse("set", `got ${text}.`, "Use FIELD=VALUE, for example priority=5.");
    const [parent, name] = placeOf(copy, text.slice(0, at), "set");
    parent[name] = parsed(text.slice(at + 1));
  }
  for (const path of unset) {
    const [parent, name] = placeOf(copy, path, "unset");
    delete parent[name];
  }
  return copy;
}

/** Creates missing objects on the path to a field that is being set. */
function placeOf(fields: Fields, path: string, option: "set" | "unset"): [parent: Fields, name: string] {
  const names = path.split(".");
  if (names.some((name) => name === "" || UNSAFE.has(name)))
    throw misuse(option, `${path} is not a field.`, "Name a field; join nested fields with dots.");
  const name = names.pop() as string;
  let parent = fields;
  for (const [depth, each] of names.entries()) {
    if (option === "set") parent[each] ??= {};
    else if (parent[each] === undefined) return [{}, name];
    const next = parent[each];
    if (typeof next !== "object" || next === null || Array.isArray(next)) {
      const whole = names.slice(0, depth + 1).join(".");
      throw misuse(option, `${whole} has no fields.`, `Set ${whole} as a whole, as JSON.`);
    }
    parent = next as Fields;
  }
  return [parent, name];
}

/** Text that is not JSON is used as a string. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
