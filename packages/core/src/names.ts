import { CarillonError, quote } from "./errors.js";

/** What namespace, queue, owner, id, tag and task type are made of; nothing else ever reaches a Redis key. */
export const NAME_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

export const NAME_REMEDY = "Use 1 to 128 letters, digits, '.', '_' or '-'.";

export const DEFAULT_OWNER = "system";
export const DEFAULT_NAMESPACE = "carillon";

/** A task's full address. Queue, owner and id of a task never change. */
export interface TaskName {
  readonly queue: string;
  readonly owner: string;
  readonly id: string;
}

/** How a caller names a task: `"id"`, `"owner/id"`, or the parts. Without a queue it is searched for. */
export type TaskRef = string | { id: string; owner?: string | undefined; queue?: string | undefined };

/** A ref with its owner settled; the queue may still have to be found. */
export interface ResolvedRef {
  readonly queue: string | undefined;
  readonly owner: string;
  readonly id: string;
}

export function isName(value: unknown): value is string {
  return typeof value === "string" && NAME_PATTERN.test(value);
}

/** @throws `INVALID_NAME` naming `field` and what is allowed. */
export function assertName(value: unknown, field: string): string {
  if (isName(value)) return value;
  throw new CarillonError("INVALID_NAME", `got ${quote(value)}.`, {
    field,
    remedy: NAME_REMEDY,
  });
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

/** `owner/id`: a task's name within its queue, and the member that stands for it in every index. */
export function localName(name: { owner: string; id: string }): string {
  return `${name.owner}/${name.id}`;
}

export function parseLocalName(local: string): { owner: string; id: string } {
  const slash = local.indexOf("/");
  return { owner: local.slice(0, slash), id: local.slice(slash + 1) };
}
