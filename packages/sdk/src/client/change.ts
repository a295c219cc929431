import { isDeepStrictEqual } from "node:util";
import { ALERTS_QUEUE, type Json, type TaskDefinition, type TaskName } from "@carillon/core";

/** Changes that the log records. */
export const CHANGE_KINDS = [
  "put",
  "delete",
  "move",
  "trigger",
  "retry",
  "pause",
  "resume",
  "cancel",
  "backfill",
  "backfill.cancel",
  "calendar.put",
  "calendar.delete",
  "defaults",
  "quota",
  "types",
  "queue.pause",
  "queue.resume",
  "queue.limit",
  "queue.delete",
  "freeze",
  "unfreeze",
  "silence",
  "unsilence",
  "token.create",
  "token.revoke",
  "apply",
] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

/**
 * The object of a change: a task if `id` is present; the tasks of a queue, an owner or a tag if `count` is. Empty: the
 * namespace.
 */
export interface ChangeScope {
  readonly queue?: string | undefined;
  readonly owner?: string | undefined;
  readonly id?: string | undefined;
  readonly tag?: string | undefined;
  readonly calendar?: string | undefined;
  readonly freeze?: string | undefined;
  readonly token?: string | undefined;
  readonly set?: string | undefined;
}

interface Pause {
  readonly at: number;
  readonly by?: string | undefined;
  readonly note?: string | undefined;
}

interface Sides<Value> {
  readonly before?: Value | undefined;
  readonly after?: Value | undefined;
}

/** More about a change. */
export interface ChangeFacts {
  /** Number of tasks, if many were changed together. */
  readonly count?: number | undefined;
  /** The first ten of them, with the pauses that the change ended, or the schedules and next times that it changed. */
  readonly sample?:
    | readonly (TaskName & {
        readonly paused?: Pause | undefined;
        readonly schedule?: Sides<Json>;
        readonly next?: Sides<number>;
      })[]
    | undefined;
  /** Tasks that can be undone, as `queue/owner/id`: each definition that was replaced names the change. An apply adds what it did, after a space. */
  readonly undo?: readonly string[] | undefined;
  /**
   * The fields that were replaced or deleted, and their new values: of a task's definition, a calendar or policies. A
   * value of more than 1,000 characters of JSON is replaced by its size.
   */
  readonly before?: Readonly<Record<string, Json>> | undefined;
  readonly after?: Readonly<Record<string, Json>> | undefined;
  /** Options of the call, such as `note`, `run` or `from`. */
  readonly details?: Readonly<Record<string, Json | undefined>> | undefined;
}

export function manyOf(tasks: readonly TaskName[]): { scope: ChangeScope; facts: ChangeFacts } {
  const [first] = tasks;
  const common = (part: "queue" | "owner") =>
    tasks.every((task) => task[part] === first?.[part]) ? first?.[part] : undefined;
  const sample = tasks.slice(0, 10).map(({ queue, owner, id }) => ({ queue, owner, id }));
  return {
    scope: { queue: common("queue"), owner: common("owner") },
    facts: { count: tasks.length, sample },
  };
}

/** Most characters of a value's JSON in the log. */
const LONGEST = 1_000;
/** A name never changes, and a put changes no state. */
const UNCHANGED: ReadonlySet<string> = new Set(["queue", "owner", "id", "enabled", "mode"]);

/** The fields that differ between two definitions; undefined: there is none. */
export function differenceOf(
  before: TaskDefinition | undefined,
  after: TaskDefinition | undefined,
): Pick<ChangeFacts, "before" | "after"> {
  const [was, is] = [plain(before), plain(after)];
  // A new delivery's payload holds its secrets.
  const secret = (before ?? after)?.queue === ALERTS_QUEUE ? "payload" : undefined;
  const fields = [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])].filter(
    (field) => field !== secret && !UNCHANGED.has(field) && !isDeepStrictEqual(was?.[field], is?.[field]),
  );
  return { before: was && only(was, fields), after: is && only(is, fields) };
}

/** Undefined if a stored definition is corrupt: the change itself was made, and must not fail for the log. */
function plain(definition: TaskDefinition | undefined): Record<string, Json> | undefined {
  try {
    return definition && (JSON.parse(JSON.stringify(definition)) as Record<string, Json>);
  } catch {
    return undefined;
  }
}

function only(values: Record<string, Json>, fields: readonly string[]): Record<string, Json> {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = values[field];
      return value === undefined ? [] : [[field, bounded(value)]];
    }),
  );
}

function bounded(value: Json): Json {
  const { length } = JSON.stringify(value);
  return length > LONGEST ? `(${length} characters)` : value;
}

/** Entries of a calendar, policies or types, as the log holds them. */
export function shown(values: Record<string, unknown>): Record<string, Json> {
  const given = JSON.parse(JSON.stringify(values)) as Record<string, Json>;
  return only(given, Object.keys(given));
}
