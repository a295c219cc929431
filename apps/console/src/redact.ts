import { isDeepStrictEqual } from "node:util";
import { CarillonError } from "@carillon/sdk";

/** What is shown in place of a value. */
const REDACTED = "[redacted]";

/** How deep what is to be stored may be nested: a payload's 64 levels, and one for the data of a job that holds it. */
const MAX_DEPTH = 65;

/** How deep what is stored is looked into. Others than Carillon may nest without end, and a stack has one. */
const SHOWN_DEPTH = 500;

/** The fields of our answers, and of Bull Board's, that hold what users put in; by the path that theirs begin with. */
const HOLDERS: ReadonlyMap<string, string> = new Map([
  ["payload", ".payload"],
  ["data", ".payload"],
  ["result", ".result"],
  ["returnValue", ".result"],
  ["checkpoint", ".checkpoint"],
  ["progress", ".progress"],
]);

/**
 * Hides the values of fields by their names, whoever asks: a secret that is in Redis does not leave it through the
 * console. Text is not searched.
 */
export class Redactor {
  readonly #ends: readonly string[];

  /** @param fields names or dotted paths, in any case of letters; each is found at any depth, also in lists */
  constructor(fields: readonly string[]) {
    this.#ends = fields.map((field) => `.${field.toLowerCase()}`);
  }

  /**
   * For `JSON.stringify`, and so for Express' "json replacer". Undefined: nothing is to be hidden.
   *
   * A task of which something is hidden has no revision: that is a hash, by which the value could be guessed.
   */
  get replacer(): ((this: unknown, key: string, value: unknown) => unknown) | undefined {
    if (this.#ends.length === 0) return undefined;
    const redactor = this;
    return function (key, value) {
      const path = HOLDERS.get(key);
      if (path !== undefined) return redactor.#shown(value, path);
      return key === "revision" && redactor.#hidesOf(this) ? undefined : value;
    };
  }

  #hidesOf(task: unknown): boolean {
    const { payload } = Object(task) as { payload?: unknown };
    return !isDeepStrictEqual(this.#shown(payload, ".payload"), payload);
  }

  /**
   * What was shown is not what is stored.
   *
   * @param payload what is to be stored, not checked yet
   * @param field what the error calls it
   * @throws `INVALID_PAYLOAD` where it has `[redacted]` for a field that is hidden, or is nested deeper than anything stored may be
   */
  refuseShown(payload: unknown, field = "payload"): void {
    const at = this.#findShown(payload, ".payload", field, MAX_DEPTH);
    if (at === undefined) return;
    throw new CarillonError(
      "INVALID_PAYLOAD",
      `${REDACTED} is what the console shows in place of the value.`,
      {
        field: at.replace(".payload", field),
        remedy: "Give the value itself, or edit where it is not hidden: by the SDK or the CLI.",
      },
    );
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
