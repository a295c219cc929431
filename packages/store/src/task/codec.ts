import {
  ALERTS_QUEUE,
  CATCH_UP_POLICIES,
  type Duration,
  OVERLAP_POLICIES,
  type ParsedTask,
  type Policies,
  parseDuration,
  TASK_STATES,
  type TaskDefinition,
  type TaskState,
} from "@carillon/core";
import {
  calendarsOf,
  FORMAT_VERSION,
  type Pending,
  parseLocalName,
  policySchema,
  readDelivery,
  revealed,
  slowerThanOf,
} from "@carillon/core/internal";
import { FACTS } from "../script/facts.js";
import { unreadable } from "./errors.js";
import { joinLongValues, splitLongValues } from "./long-values.js";
import * as read from "./stored-fields.js";

interface JobRetention<Time> {
  /** Time for which BullMQ keeps a job after its end. */
  for: Time;
  /** Number of jobs beyond which the oldest are removed sooner; up to a tenth more may stay for a while. */
  most: number;
}

/** Retention limits, per task and per queue. */
interface Limits<Time> {
  /** Final runs of a task that ended well; default 100. */
  successes: number;
  /** Final runs of a task that failed; default 100. */
  failures: number;
  /** Default 7 days. */
  successesFor: Time;
  /** Default 30 days. */
  failuresFor: Time;
  /** Jobs that completed; default 10 minutes, and 10,000. */
  completedJobs: JobRetention<Time>;
  /** Jobs that failed for good; default 24 hours, and 10,000. */
  failedJobs: JobRetention<Time>;
}

/** With times in ms. */
export type Retention = Limits<number>;

/** Retention as options give it, with durations: what is absent keeps its default. */
export type RetentionOptions = Partial<Omit<Limits<Duration>, "completedJobs" | "failedJobs">> & {
  [Jobs in "completedJobs" | "failedJobs"]?: Partial<JobRetention<Duration>> | undefined;
};

const DAY = 86_400_000;

export const DEFAULT_RETENTION: Retention = {
  successes: 100,
  failures: 100,
  successesFor: 7 * DAY,
  failuresFor: 30 * DAY,
  completedJobs: { for: 10 * 60_000, most: 10_000 },
  failedJobs: { for: DAY, most: 10_000 },
};

/** Defaults for crashes: the wait before the next attempt in ms, and the number of crashes that end a run. */
const DEFAULT_CRASH = FACTS.crash;

/** A task as stored: its definition and its state. Times in UTC ms of Redis time. */
export interface StoredTask {
  readonly definition: TaskDefinition;
  readonly payloadJson: string;
  /** The definition's schedule as stored. */
  readonly scheduleJson: string;
  readonly state: TaskState;
  /** Digits: it starts in µs and is compared as text. */
  readonly generation: string;
  readonly cursor: number | undefined;
  readonly nominal: number | undefined;
  readonly due: number | undefined;
  /** Occurrences of the schedule that were enqueued. */
  readonly fired: number;
  /**
   * Set while it is held for a move: `to` or `from`, the other queue, and for a copy the copied generation.
   */
  readonly moving: string | undefined;
  /** The set that it belongs to, or was removed from. */
  readonly set: read.InSet | undefined;
  /** Occurrences that are to be enqueued later. */
  readonly pending: readonly Pending[];
  /** The run after whose end the next time is known, and how many ms after. */
  readonly waiting: { run: string; delay: number } | undefined;
  /** Whether it may have runs that are not over. */
  readonly hasOpenRuns: boolean;
  /** Names the definition: the generation of the put that stored it. Another definition never has the same one. */
  readonly revision: string;
  readonly calendarRevision: number;
  readonly created: number;
  readonly updated: number;
  /** Authors of the put that created it and of the last put that changed it, if they were named. */
  readonly createdBy: string | undefined;
  readonly updatedBy: string | undefined;
  /** The trace of the `enqueue` that stored it, as a W3C `traceparent`. */
  readonly trace: string | undefined;
  readonly paused: { at: number; by?: string; note?: string } | undefined;
  /** The fields of the definition, which a put compares and writes. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Written by a newer version of Carillon than this one: left alone. */
export interface ForeignTask {
  readonly foreign: true;
  readonly version: string;
}

/** The format of a hash that names none. */
const FIRST_FORMAT: number = 1;

const TEXT_FIELDS = ["description", "subject", "submitter", "group"] as const;

/** Hash fields of a definition. Defaults are left out: a million small tasks should stay small. */
export function definitionFields({ definition, payloadJson }: ParsedTask, once = false): Map<string, string> {
  const fields = new Map<string, string>([
    ["type", definition.type],
    ["schedule", JSON.stringify(definition.schedule)],
  ]);
  if (FORMAT_VERSION !== FIRST_FORMAT) fields.set("v", String(FORMAT_VERSION));
  if (payloadJson !== "{}") fields.set("payload", payloadJson);
  if (definition.priority) fields.set("priority", String(definition.priority));
  if (definition.overlap !== "skip") fields.set("overlap", definition.overlap);
  if (definition.catchUp !== "one") fields.set("catchUp", definition.catchUp);
  if (definition.tags.length > 0) fields.set("tags", definition.tags.join(","));
  // Derived from the schedule, for the indexes.
  const calendars = calendarsOf(definition.schedule);
  if (calendars.length > 0) fields.set("calendars", calendars.join(","));
  for (const field of TEXT_FIELDS) {
    const value = definition[field];
    if (value !== undefined && value !== "") fields.set(field, value);
  }
  if (once) fields.set("once", "1");
  setPolicies(fields, definition);
  return fields;
}

const OPAQUE = new Set(["schedule", "payload", "policies", ...TEXT_FIELDS]);

/** The fields of a definition as they are written. */
export function storedFields(fields: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return splitLongValues(fields, OPAQUE);
}

const POLICIES = Object.keys(policySchema.shape).sort() as (keyof Policies)[];

/** Policies that scripts read are stored in fields of their own, in ms. */
function setPolicies(fields: Map<string, string>, definition: TaskDefinition): void {
  const given: Record<string, unknown> = {};
  for (const name of POLICIES) if (definition[name] !== undefined) given[name] = definition[name];
  const policies = JSON.stringify(revealed(given));
  if (policies !== "{}") fields.set("policies", policies);
  const { retention, alertIf = {}, linger, crash } = definition;
  const { noSuccessFor, notStartedFor, slowerThan } = alertIf;
  if (notStartedFor !== undefined || slowerThan !== undefined) {
    const slow = slowerThan === undefined ? undefined : slowerThanOf(slowerThan);
    const most = slow && ("ms" in slow ? slow.ms : `${slow.percent}%`);
    fields.set("watch", `${notStartedFor === undefined ? "-" : parseDuration(notStartedFor)} ${most ?? "-"}`);
  }
  if (noSuccessFor !== undefined) fields.set("expect", String(parseDuration(noSuccessFor)));
  if (linger !== undefined) fields.set("linger", String(parseDuration(linger)));
  if (crash !== undefined) {
    const delay = crash.delay === undefined ? DEFAULT_CRASH.delay : parseDuration(crash.delay);
    fields.set("crash", `${delay} ${crash.attempts ?? DEFAULT_CRASH.attempts}`);
  }
  if (retention !== undefined) {
    const { successes, failures, successesFor, failuresFor } = retention;
    const kept = [
      successes ?? DEFAULT_RETENTION.successes,
      failures ?? DEFAULT_RETENTION.failures,
      successesFor === undefined ? DEFAULT_RETENTION.successesFor : parseDuration(successesFor),
      failuresFor === undefined ? DEFAULT_RETENTION.failuresFor : parseDuration(failuresFor),
    ];
    fields.set("keep", kept.join(" "));
  }
}

/**
 * Decodes a task hash, as the client reads it or as `HGETALL` returns it in a script. Undefined: there is none.
 *
 * @param known its definition, if the caller has found that it is this one: it is not decoded again
 * @throws `UNSUPPORTED_FORMAT` for foreign data
 */
export function decodeTask(
  queue: string,
  local: string,
  stored: readonly string[] | Readonly<Record<string, string>>,
  known?: TaskDefinition,
): StoredTask | ForeignTask | undefined {
  const hash = isFlat(stored) ? pairs(stored) : new Map(Object.entries(stored));
  if (hash.size === 0) return undefined;
  joinLongValues(hash);
  const version = hash.get("v") ?? String(FIRST_FORMAT);
  if (Number(version) > FORMAT_VERSION) return { foreign: true, version };
  try {
    return decodeHash(queue, local, hash, known);
  } catch (error) {
    throw unreadable(local, error);
  }
}

function isFlat(stored: object): stored is readonly string[] {
  return Array.isArray(stored);
}

/** @param flat fields and values */
export function pairs(flat: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) found.set(flat[i] as string, flat[i + 1] as string);
  return found;
}

/** Whether a task as it is stored has these fields, and no others of a definition. @param fields as `storedFields` gives them */
export function holds(
  stored: Readonly<Record<string, string>>,
  fields: ReadonlyMap<string, string>,
): boolean {
  let count = 0;
  for (const field in stored) {
    if (FACTS.bookkeeping.has(field)) continue;
    if (stored[field] !== fields.get(field)) return false;
    count += 1;
  }
  return count === fields.size;
}

function decodeHash(
  queue: string,
  local: string,
  hash: ReadonlyMap<string, string>,
  known: TaskDefinition | undefined,
): StoredTask {
  const time = (field: string) => read.integer(hash.get(field));
  // As createdAt (lib/task.lua).
  const created = time("created") ?? Math.floor((time("rev") ?? 0) / 1000);
  const payloadJson = hash.get("payload") ?? "{}";
  const scheduleJson = hash.get("schedule") ?? "null";
  const state = read.oneOf(TASK_STATES, hash.get("state"), "scheduled");
  const pausedBy = hash.get("pausedBy");
  const note = hash.get("pauseNote");
  const enabled = state !== "paused";
  const mode = hash.get("mode") === "shadow" ? "shadow" : undefined;
  return {
    definition: known ? { ...known, enabled, mode } : decodeDefinition(queue, local, hash, { enabled, mode }),
    payloadJson,
    scheduleJson,
    state,
    generation: read.generation(hash.get("gen")),
    cursor: time("cursor"),
    nominal: time("nominal"),
    due: time("due") ?? time("nominal"),
    fired: time("fired") ?? 0,
    moving: hash.get("moving"),
    set: read.inSet(hash.get("set")),
    pending: read.pending(hash.get("pending")),
    waiting: read.waiting(hash.get("wait")),
    hasOpenRuns: (hash.get("open") ?? "") !== "",
    revision: hash.get("rev") ?? "",
    calendarRevision: time("calrev") ?? 0,
    created,
    updated: time("updated") ?? created,
    createdBy: hash.get("createdBy"),
    updatedBy: hash.get("updatedBy"),
    trace: hash.get("trace"),
    paused:
      state === "paused"
        ? {
            // Put as disabled: paused from the start.
            at: time("pausedAt") ?? created,
            ...(pausedBy === undefined ? {} : { by: pausedBy }),
            ...(note === undefined ? {} : { note }),
          }
        : undefined,
    // A claim does not ask for them.
    get fields() {
      return new Map([...hash].filter(([field]) => !FACTS.bookkeeping.has(field)));
    },
  };
}

function decodeDefinition(
  queue: string,
  local: string,
  hash: ReadonlyMap<string, string>,
  { enabled, mode }: Pick<TaskDefinition, "enabled" | "mode">,
): TaskDefinition {
  const { owner, id } = parseLocalName(local);
  const payload = read.json(hash.get("payload") ?? "{}");
  const own = {
    owner: read.name(owner),
    id: read.name(id),
    queue,
    type: read.name(hash.get("type")),
    schedule: read.schedule(hash.get("schedule") ?? "null"),
    payload: queue === ALERTS_QUEUE ? (readDelivery(payload) as never) : payload,
    enabled,
    priority: read.priority(hash.get("priority")),
    overlap: read.oneOf(OVERLAP_POLICIES, hash.get("overlap"), "skip"),
    catchUp: read.oneOf(CATCH_UP_POLICIES, hash.get("catchUp"), "one"),
    tags: hash.get("tags")?.split(",") ?? [],
  };
  const more = { ...read.policies(hash.get("policies")), ...textsOf(hash), ...(mode && { mode }) };
  // Most tasks have no further fields: objects of one shape are much faster.
  return Object.keys(more).length > 0 ? { ...more, ...own } : own;
}

/** A definition of a task that was replaced, or deleted. */
export interface Revision {
  /** Counts from 1. */
  readonly number: number;
  /** Time of its replacement or deletion, UTC ms. */
  readonly until: number;
  /** Author of the put that stored it, if it was named. */
  readonly by: string | undefined;
  /** Id of the entry in the change log whose put replaced it, if that was one of many tasks. */
  readonly change?: string | undefined;
  readonly deleted?: TaskState;
  readonly definition: TaskDefinition;
}

/** Empty for corrupt data. */
export function decodeRevision(queue: string, local: string, text: string): Revision[] {
  try {
    const [number, until, by, fields, state, change] = JSON.parse(text) as [
      ...[number: number, until: string, by: string | false, fields: object],
      ...[state?: string | false, change?: string],
    ];
    const task = decodeTask(queue, local, ["gen", "1", ...Object.entries(fields).flat()]);
    if (!task || isForeign(task)) return [];
    return [
      {
        ...{ number, until: Number(until), by: by || undefined, definition: task.definition },
        ...(change !== undefined && { change }),
        ...(state && { deleted: read.oneOf(TASK_STATES, state, "scheduled") }),
      },
    ];
  } catch {
    return [];
  }
}

function textsOf(hash: ReadonlyMap<string, string>): Partial<TaskDefinition> {
  const texts: { -readonly [Field in (typeof TEXT_FIELDS)[number]]?: string } = {};
  for (const field of TEXT_FIELDS) {
    const value = hash.get(field);
    if (value !== undefined) texts[field] = value;
  }
  return texts;
}

/** A task that cannot be read must not stop the others of its batch or list. */
export function readable(
  queue: string,
  local: string,
  stored: readonly string[] | Readonly<Record<string, string>>,
): StoredTask | ForeignTask | undefined {
  try {
    return decodeTask(queue, local, stored);
  } catch {
    return undefined;
  }
}

/** Whether it stays scheduled without a next time, for triggers. */
export function isManual({ definition, set }: Pick<StoredTask, "definition" | "set">): boolean {
  return "manual" in definition.schedule && !isRetired({ set });
}

/** Whether it was removed from its set: its schedule holds no more. */
export function isRetired({ set }: Pick<StoredTask, "set">): boolean {
  return set !== undefined && set.revision === undefined;
}

export function isForeign(task: StoredTask | ForeignTask): task is ForeignTask {
  return "foreign" in task;
}
