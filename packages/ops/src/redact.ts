import { isDeepStrictEqual } from "node:util";
import { CarillonError } from "@carillon/core";

/** Text that replaces a value. */
const REDACTED = "[redacted]";
/** The same for one that differs from the value that it replaces. */
const CHANGED = `${REDACTED} (changed)`;

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

/** A word for a secret anywhere in a name, as in `DB_PASSWORD` or `SECRET_KEY_BASE`, or at its end, as in `apiKey`. */
const [ANYWHERE, AT_END] = [
  "passw(?:or)?d|passphrase|secret|credential|authorization",
  "(?:(?:token|key)s?|(?<![a-z0-9])(?:pass|pwd))",
];
const SECRET_NAME = new RegExp(`${ANYWHERE}|${AT_END}$`, "i");
/** In a text: the password of a URL, and the value after such a name, as in `API_KEY=1`, `--password 1` or `Authorization: Bearer 1`. */
const IN_TEXT = new RegExp(
  `(://[^\\s:/@]{0,200}:)[^\\s/@]+(?=@)|((?:(?:${ANYWHERE})[\\w-]{0,40}|${AT_END})(?:["']?[=:]\\s?(?:bearer |basic )?|(?<=\\s--[\\w-]{1,40}) ))("[^"]+"|'[^']+'|[^\\s"';&|]+)`,
  "gi",
);

/** Hides the values of fields by their names, so that secrets in Redis do not leave it through a console, a plan or a report. */
export class Redactor {
  readonly #ends: readonly string[];

  /**
   * @param fields names or dotted paths, in any case of letters; each is found at any depth, also in lists
   * @param secrets also fields that are named like a secret, and secrets in texts; a placeholder is refused in any field then
   */
  constructor(
    fields: readonly string[],
    private readonly secrets = false,
  ) {
    this.#ends = fields.map((field) => `.${field.toLowerCase()}`);
  }

  /** A payload as it may be shown. @param before the one that it replaces: a hidden value that differs from it is marked as changed */
  shown(payload: unknown, before?: unknown): unknown {
    return this.#shown(payload, ".payload", SHOWN_DEPTH, before);
  }

  /** Fields of the values that are hidden in what `shown` has returned. */
  placeholdersIn(payload: unknown): string[] {
    const paths = this.#placeholders(payload, ".payload", "payload", SHOWN_DEPTH);
    return [...new Set(paths)].map((path) => path.slice(1));
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
    return !this.#placeholders(payload, ".payload", "payload", MAX_DEPTH).next().done;
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
    const [at] = this.#placeholders(payload, ".payload", field, MAX_DEPTH);
    if (at === undefined) return;
    throw new CarillonError(
      "INVALID_PAYLOAD",
      `${REDACTED} is the placeholder of a hidden value, and stands for no stored value here.`,
      { field: at.replace(".payload", field), remedy: "Give the value itself." },
    );
  }

  #isPlaceholder(text: string, path: string): boolean {
    if (!this.secrets) return text === REDACTED && this.#hides(path);
    if (text === REDACTED || text === CHANGED) return true;
    return text.includes(REDACTED) && [...text.matchAll(IN_TEXT)].some(([all]) => all.endsWith(REDACTED));
  }

  #restored(value: unknown, stored: unknown, path: string): unknown {
    if (value === REDACTED && this.#hides(path)) return stored === undefined ? value : stored;
    if (Array.isArray(value)) return Array.isArray(stored) ? this.#restoredList(value, stored, path) : value;
    if (typeof value !== "object" || value === null || typeof stored !== "object" || stored === null)
      return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name,
        this.#restored(one, memberOf(stored, name), `${path}.${name}`),
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
    return (
      this.#ends.some((end) => known.endsWith(end)) ||
      (this.secrets && SECRET_NAME.test(known.slice(known.lastIndexOf(".") + 1)))
    );
  }

  #shown(value: unknown, path: string, depthLeft = SHOWN_DEPTH, before?: unknown): unknown {
    if (value === undefined) return undefined;
    if (this.#hides(path) || depthLeft === 0)
      return before === undefined || isDeepStrictEqual(value, before) ? REDACTED : CHANGED;
    if (typeof value === "string") return this.#shownText(value, before);
    const inner = (one: unknown, path: string, name: string | number) =>
      this.#shown(one, path, depthLeft - 1, memberOf(before, name));
    if (Array.isArray(value)) return value.map((one, i) => inner(one, path, i));
    if (typeof value !== "object" || value === null) return value;
    // `{ "name": "DB_PASSWORD", "value": "1" }`, as lists of variables and headers have it.
    const named = this.secrets ? memberOf(value, "name") : undefined;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => {
        const field = name === "value" && typeof named === "string" ? named : name;
        return [name, inner(one, `${path}.${field}`, name)];
      }),
    );
  }

  #shownText(text: string, before?: unknown): string {
    if (!this.secrets) return text;
    const shown = text.replace(IN_TEXT, (_, url = "", name = "") => `${url}${name}${REDACTED}`);
    const isHidden = shown !== text && typeof before === "string" && before !== text;
    return isHidden && this.#shownText(before) === shown ? `${shown} (changed)` : shown;
  }

  *#placeholders(value: unknown, path: string, field: string, depthLeft: number): Generator<string> {
    if (typeof value === "string" && this.#isPlaceholder(value, path)) yield path;
    if (typeof value !== "object" || value === null) return;
    if (depthLeft === 0) {
      throw new CarillonError("INVALID_PAYLOAD", "nested too deeply.", { field, remedy: "Flatten it." });
    }
    for (const [name, one] of Object.entries(value))
      yield* this.#placeholders(one, Array.isArray(value) ? path : `${path}.${name}`, field, depthLeft - 1);
  }
}

function memberOf(value: unknown, name: string | number): unknown {
  return Object.hasOwn(Object(value), name) ? (value as Record<string | number, unknown>)[name] : undefined;
}

/** Hides what a plan of a set may not show: by default all that is named like a secret. */
export function redactorOf({
  redact = [],
}: {
  readonly redact?: readonly string[] | false | undefined;
}): Redactor {
  return redact === false ? new Redactor([]) : new Redactor(redact, true);
}
