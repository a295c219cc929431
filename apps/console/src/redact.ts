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
  ["alerts", ".alerts"],
]);

/** The type of the tasks, and the name of the jobs, that deliver alerts: their payloads hold the URLs. */
const DELIVERY = "carillon.webhook";

/**
 * Hides URLs of alerts from viewers: a URL may be a credential, so only its host is shown. A host alone is not a URL,
 * so it cannot be stored back. A task with alerts has no revision here, because the URL could be guessed from that
 * hash.
 * @param within whether the answer is a part of a delivery
 */
export function hostsOnly(answer: unknown, within = false): unknown {
  if (Array.isArray(answer)) return answer.map((one) => hostsOnly(one, within));
  if (typeof answer !== "object" || answer === null || "toJSON" in answer) return answer;
  const { type, name, alerts } = answer as { type?: unknown; name?: unknown; alerts?: unknown };
  const delivers = within || type === DELIVERY || name === DELIVERY;
  const shown = Object.entries(answer).map(([key, value]) => {
    if (key === "alerts" || (delivers && HOLDERS.has(key))) return [key, withHosts(value)];
    return [key, HOLDERS.has(key) ? value : hostsOnly(value, delivers)];
  });
  return Object.fromEntries(
    shown.filter(([key]) => key !== "revision" || !(delivers || Array.isArray(alerts))),
  );
}

/** Replaces URLs in alerts, or in a delivery's payload or job data. */
function withHosts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withHosts);
  if (typeof value !== "object" || value === null) return value;
  const { url, payload } = value as { url?: unknown; payload?: unknown };
  return {
    ...value,
    ...(typeof url === "string" ? { url: URL.canParse(url) ? new URL(url).host : REDACTED } : {}),
    ...(payload === undefined ? {} : { payload: withHosts(payload) }),
  };
}

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

  /**
   * Replacer for `JSON.stringify`, and so for Express' "json replacer". Undefined if no field is hidden. A task with a
   * hidden value has no revision here, because the value could be guessed from that hash.
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
    const { payload, alerts } = Object(task) as { payload?: unknown; alerts?: unknown };
    const hides = (value: unknown, path: string) => !isDeepStrictEqual(this.#shown(value, path), value);
    return hides(payload, ".payload") || hides(alerts, ".alerts");
  }

  /**
   * Refuses a payload that would replace a hidden value by the placeholder that was shown for it.
   * @param payload new data, not checked yet
   * @param field its name in the error
   * @throws `INVALID_PAYLOAD` if it has `[redacted]` in a hidden field, or is nested too deeply
   */
  refuseShown(payload: unknown, field = "payload"): void {
    const at = this.#findShown(payload, ".payload", field, MAX_DEPTH);
    if (at === undefined) return;
    throw new CarillonError("INVALID_PAYLOAD", `${REDACTED} is the console's placeholder, not a value.`, {
      field: at.replace(".payload", field),
      remedy: "Give the value itself, or edit where it is not hidden: by the SDK or the CLI.",
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
