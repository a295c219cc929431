import { CarillonError, quote } from "./errors.js";

/** Pattern of namespace, queue, owner, id, tag and task type; no other user text ever reaches a Redis key. */
export const NAME_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

export const NAME_REMEDY =
  "Use 1 to 128 letters, digits, '.', '_' or '-'; nameOf(text) makes a name of other text.";

export const DEFAULT_OWNER = "system";
export const DEFAULT_NAMESPACE = "carillon";
/** The queue of the jobs that carry alerts to webhooks. */
export const ALERTS_QUEUE = "carillon-alerts";

/** A task's full address. Queue, owner and id of a task never change. */
export interface TaskName {
  readonly queue: string;
  readonly owner: string;
  readonly id: string;
}

/** Name of a task as callers write it: `"id"`, `"owner/id"`, or the parts. Without a queue it is searched for. */
export type TaskRef = string | { id: string; owner?: string | undefined; queue?: string | undefined };

/** A ref whose owner is known; the queue may still be unknown. */
export interface ResolvedRef {
  readonly queue: string | undefined;
  readonly owner: string;
  readonly id: string;
}

export function isName(value: unknown): value is string {
  return typeof value === "string" && NAME_PATTERN.test(value);
}

/** @throws `INVALID_NAME` with `field` and the allowed characters */
export function assertName(value: unknown, field: string): string {
  if (isName(value)) return value;
  throw new CarillonError("INVALID_NAME", `got ${quote(value)}.`, {
    field,
    remedy: NAME_REMEDY,
  });
}

/**
 * A name for any text, such as the id of a user in another system; {@link textOfName} gives the text back. Letters, digits,
 * `.` and `-` stay as they are; each byte of anything else, `_` too, becomes `_` and two hex digits.
 *
 * @example
 * nameOf("auth0|5f7c"); // "auth0_7C5f7c"
 * nameOf("ada@example.org"); // "ada_40example.org"
 * @throws `INVALID_NAME` if the text is empty, is not Unicode, or becomes longer than 128 characters
 */
export function nameOf(text: string): string {
  const name = typeof text !== "string" || /\p{Surrogate}/u.test(text) ? "" : escaped(text);
  if (NAME_PATTERN.test(name)) return name;
  throw new CarillonError("INVALID_NAME", `${quote(text)} makes a name of ${name.length} characters.`, {
    field: "text",
    remedy: "Give Unicode text that makes a name of 1 to 128 characters; of longer text, a hash.",
  });
}

/** The text that {@link nameOf} made a name of. @throws `INVALID_NAME` if it did not make this name */
export function textOfName(name: string): string {
  let text = "";
  try {
    text = decodeURIComponent(assertName(name, "name").replaceAll("_", "%"));
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
  }
  if (escaped(text) === name) return text;
  throw new CarillonError("INVALID_NAME", `nameOf has not made ${quote(name)}.`, {
    field: "name",
    remedy: "Give what nameOf(text) returned.",
  });
}

function escaped(text: string): string {
  return encodeURIComponent(text)
    .replace(/[_!~*'()]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%", "_");
}

/** @throws `INVALID_NAME` */
export function parseRef(ref: TaskRef, fallbackOwner: string = DEFAULT_OWNER): ResolvedRef {
  if (typeof ref !== "string") {
    return {
      queue: ref.queue === undefined ? undefined : assertName(ref.queue, "queue"),
      owner: assertName(ref.owner ?? fallbackOwner, "owner"),
      id: assertName(ref.id, "id"),
    };
  }
  const slash = ref.indexOf("/");
  if (slash < 0) return { queue: undefined, owner: fallbackOwner, id: assertName(ref, "id") };
  return {
    queue: undefined,
    owner: assertName(ref.slice(0, slash), "owner"),
    id: assertName(ref.slice(slash + 1), "id"),
  };
}

/** `owner/id`: a task's name within its queue, and its member in every index. */
export function localName(name: { owner: string; id: string }): string {
  return `${name.owner}/${name.id}`;
}

/**
 * The seed of `H` in a cron expression and of jitter: `owner/id`, so that tasks with the same id but different
 * owners get different times; for owner `system` the id alone. Never change it: stored schedules would move to other times.
 */
export function seedOf({ owner = DEFAULT_OWNER, id }: { owner?: string | undefined; id: string }): string {
  return owner === DEFAULT_OWNER ? id : localName({ owner, id });
}

export function parseLocalName(local: string): { owner: string; id: string } {
  const slash = local.indexOf("/");
  return { owner: local.slice(0, slash), id: local.slice(slash + 1) };
}
