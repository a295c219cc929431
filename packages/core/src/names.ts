import { CarillonError, quote } from "./errors.js";

/** Pattern of namespace, queue, owner, id, tag and task type; no other user text ever reaches a Redis key. */
export const NAME_PATTERN = /^[A-Za-z0-9._-]{1,128}$/;

export const NAME_REMEDY = "Use 1 to 128 letters, digits, '.', '_' or '-'.";

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
