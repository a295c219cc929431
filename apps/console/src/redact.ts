import { isDeepStrictEqual } from "node:util";
import { CarillonError } from "@carillon/sdk";

/** Text that replaces a value. */
const REDACTED = "[redacted]";

/** Deepest nesting of new data: a payload's 64 levels, and one for the data of a job that holds it. */
const MAX_DEPTH = 65;

/** Deepest nesting of stored data that is searched. Foreign data may be nested so deeply that it would overflow the stack. */
const SHOWN_DEPTH = 500;

/** The fields of our answers, and of Bull Board's, that hold users' data, and the prefix of its paths. */
const HOLDERS: ReadonlyMap<string, string> = new Map([
  ["payload", ".payload"],
  ["data", ".payload"],
  ["result", ".result"],
  ["returnValue", ".result"],
  ["checkpoint", ".checkpoint"],
  ["progress", ".progress"],
]);

/**
 * Hides the values of fields by their names, for every role, so that secrets in Redis do not leave it through the
 * console. Does not search texts.
 */
export class Redactor {
  readonly #ends: readonly string[];

  /** @param fields names or dotted paths, in any case of letters; each is found at any depth, also in lists */
  constructor(fields: readonly string[]) {
    this.#ends = fields.map((field) => `.${field.toLowerCase()}`);
  }

  /** Replacer for `JSON.stringify`, and so for Express' "json replacer". Undefined if no field is hidden. */
  get replacer(): ((key: string, value: unknown) => unknown) | undefined {
    if (this.#ends.length === 0) return undefined;
    return (key, value) => {
      const path = HOLDERS.get(key);
      return path === undefined ? value : this.#shown(value, path);
    };
  }

  /** Whether new data has the placeholder in a hidden field. @throws as `refuseShown` if it is nested too deeply */
  hasShown(payload: unknown): boolean {
    return this.#findShown(payload, ".payload", "payload", MAX_DEPTH) !== undefined;
  }

  /**
   * Puts the stored values back where new data has the placeholder. A list's element takes them from the stored element
   * that looks like it, or from the one at its place if no other element differs. So no value comes to another element.
   *
   * @throws `INVALID_PAYLOAD` if a placeholder is left
   */
  restored(payload: unknown, stored: unknown): unknown {
    const whole = this.#restored(payload, stored, ".payload");
    this.refuseShown(whole, "payload");
    return whole;
  }

  /**
   * Refuses a payload that would replace a hidden value by the placeholder that was shown for it.
   * @param payload new data, not checked yet
   * @param field its name in the error
   * @throws `INVALID_PAYLOAD` if it has `[redacted]` in a hidden field, or is nested too deeply
   */
  refuseShown(payload: unknown, field: string): void {
    const at = this.#findShown(payload, ".payload", field, MAX_DEPTH);
    if (at === undefined) return;
    throw new CarillonError(
      "INVALID_PAYLOAD",
      `${REDACTED} is the console's placeholder, and stands for no stored value here.`,
      {
        field: at.replace(".payload", field),
        remedy: "Give the value itself, or edit where it is not hidden: by the SDK or the CLI.",
      },
    );
  }

  #restored(value: unknown, stored: unknown, path: string): unknown {
    if (value === REDACTED && this.#hides(path)) return stored === undefined ? value : stored;
    if (Array.isArray(value)) return Array.isArray(stored) ? this.#restoredList(value, stored, path) : value;
    if (typeof value !== "object" || value === null || typeof stored !== "object" || stored === null)
      return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name,
        this.#restored(
          one,
          Object.hasOwn(stored, name) ? (stored as Record<string, unknown>)[name] : undefined,
          `${path}.${name}`,
        ),
      ]),
    );
  }

  #restoredList(list: readonly unknown[], stored: readonly unknown[], path: string): unknown[] {
    const shown = stored.map((one) => this.#shown(one, path));
    const isKept = (one: unknown, i: number) => isDeepStrictEqual(one, shown[i]);
    const edited = list.filter((one, i) => !isKept(one, i)).length;
    return list.map((one, i) => {
      if (isKept(one, i)) return stored[i];
      const alike = shown.flatMap((other, at) => (isDeepStrictEqual(one, other) ? [at] : []));
      if (alike.length === 1) return stored[alike[0] as number];
      return edited === 1 && list.length === stored.length ? this.#restored(one, stored[i], path) : one;
    });
  }

  #hides(path: string): boolean {
    const known = path.toLowerCase();
    return this.#ends.some((end) => known.endsWith(end));
  }

  #shown(value: unknown, path: string, depthLeft = SHOWN_DEPTH): unknown {
    if (value === undefined) return undefined;
    if (this.#hides(path) || depthLeft === 0) return REDACTED;
    if (Array.isArray(value)) return value.map((one) => this.#shown(one, path, depthLeft - 1));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.#shown(one, `${path}.${name}`, depthLeft - 1)]),
    );
  }

  #findShown(value: unknown, path: string, field: string, depthLeft: number): string | undefined {
    if (value === REDACTED) return this.#hides(path) ? path : undefined;
    if (typeof value !== "object" || value === null) return undefined;
    if (depthLeft === 0) {
      throw new CarillonError("INVALID_PAYLOAD", "nested too deeply.", {
        field,
        remedy: "Flatten it.",
      });
    }
    for (const [name, one] of Object.entries(value)) {
      const found = this.#findShown(
        one,
        Array.isArray(value) ? path : `${path}.${name}`,
        field,
        depthLeft - 1,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
