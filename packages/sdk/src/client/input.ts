import {
  CarillonError,
  describeSchedule,
  OUTCOMES,
  type Outcome,
  type ParsedTask,
  seedOf,
  type TaskName,
} from "@carillon/core";
import {
  assertOptions,
  assertWhole,
  durationOption,
  invalid,
  MAX_DURATION,
  PRINTABLE,
  quote,
  roundedInstant,
} from "@carillon/core/internal";
import { ABSENT, type PutResult as StoredPut } from "@carillon/store";
import { isTaskType } from "../task-type.js";
import type { EnqueueOptions, PutOptions, PutResult, Warning } from "./types.js";
import { NO_NEXT } from "./validation.js";

/** Whether the first argument of a put is a task type (or meant as one) rather than the task. */
export function isTyped(first: unknown, second: unknown): boolean {
  if (isTaskType(second)) throw invalid("type", "the type comes before the task.", "Call put(type, task).");
  return second !== undefined && (isTaskType(first) || "schedule" in Object(second));
}

const STAYS_PAUSED: Warning = {
  code: "STAYS_PAUSED",
  message: "enabled: true: the task is paused, and a put resumes none.",
  remedy: "Resume it, or leave enabled out.",
};

const REVISION = /^\d{1,20}$/;

/** @throws `INVALID_OPTION` */
export function assertPutOptions(options: PutOptions): void {
  assertOptions(options, ["ifRevision", "by", "dryRun"]);
  shortText(options.by, "by");
  const { ifRevision } = options;
  if (ifRevision === undefined || ifRevision === ABSENT) return;
  if (typeof ifRevision === "string" && REVISION.test(ifRevision)) return;
  throw invalid(
    "ifRevision",
    `${quote(ifRevision)} is not a revision.`,
    `Give the task's revision, as get returns it, or ${ABSENT}.`,
  );
}

export interface CheckedTask extends ParsedTask {
  readonly warnings: readonly Warning[];
  /** `enabled: true` was given, not left out. */
  readonly asksToRun: boolean;
}

/** @param more about its worker; does not matter if the task never runs */
export function putView(result: StoredPut, task: CheckedTask, more: readonly Warning[]): PutResult {
  const warnings = [...task.warnings];
  if (result.state === "paused" && task.asksToRun && result.outcome !== "created")
    warnings.push(STAYS_PAUSED);
  if (result.state === "finished") warnings.push(NO_NEXT);
  else warnings.push(...more);
  return {
    task: result.name,
    outcome: result.outcome,
    state: result.state,
    // Computed when asked for: it takes longer than all else here, and few who put many tasks read it.
    get humanized() {
      return describeSchedule(task.definition.schedule, seedOf(task.definition));
    },
    nextExecution: result.due,
    warnings,
  };
}

/** Due time of a one-off task, given the time of Redis. Throws at once for options that are wrong. */
export function moment({ at, delay }: EnqueueOptions): (now: number) => number {
  if (at !== undefined && delay !== undefined)
    throw invalid("delay", "cannot be combined with at.", "Give one of the two.");
  if (at !== undefined) {
    const time = roundedInstant(at, "at");
    return () => time;
  }
  const wait = durationOption(delay, "delay", 0, MAX_DURATION) ?? 0;
  return (now) => now + wait;
}

export function wholeNumber(value: number, field: string, least: number, most: number): number {
  assertWhole(value, field, least, most);
  return value;
}

export function shortText(value: string | undefined, field: string): string {
  if (value === undefined) return "";
  if (typeof value !== "string")
    throw invalid(field, "not a text.", "Give a text of at most 500 characters.");
  if (value.length > 500) throw invalid(field, "longer than 500 characters.", "Shorten it.");
  if (PRINTABLE.test(value)) return value;
  throw invalid(field, "contains control characters.", "Leave them out.");
}

export function notFound(name: TaskName): CarillonError {
  return new CarillonError(
    "TASK_NOT_FOUND",
    `there is no task ${name.owner}/${name.id} in queue ${name.queue}.`,
  );
}

export function at(error: unknown, index: number): unknown {
  if (!(error instanceof CarillonError)) return error;
  const start = error.field === undefined ? 0 : error.field.length + 2;
  const what = error.message.slice(start, error.remedy === undefined ? undefined : -error.remedy.length - 1);
  return new CarillonError(error.code, what, {
    field: error.field === undefined ? `[${index}]` : `[${index}].${error.field}`,
    ...(error.remedy === undefined ? {} : { remedy: error.remedy }),
    cause: error,
  });
}

/** @param names positions of the earlier tasks, by name @throws `INVALID_TASK` if one of them has this name */
export function assertFirst({ queue, owner, id }: TaskName, names: Map<string, number>): void {
  const name = `${queue}/${owner}/${id}`;
  const before = names.get(name);
  if (before === undefined) {
    names.set(name, names.size);
    return;
  }
  throw new CarillonError("INVALID_TASK", `${owner}/${id} in queue ${queue} is at [${before}] already.`, {
    field: "id",
    remedy: "Give each task once.",
  });
}

/** @throws `INVALID_NAME` */
export function assertRef(ref: unknown): void {
  if (typeof ref === "string" || (typeof ref === "object" && ref !== null)) return;
  throw new CarillonError("INVALID_NAME", `got ${quote(ref)}.`, {
    field: "task",
    remedy: "Give id, owner/id, or { queue, owner, id }.",
  });
}

/** One outcome or several; undefined: any. @throws `INVALID_OPTION` */
export function outcomesOf(
  outcome: Outcome | readonly Outcome[] | undefined,
): ReadonlySet<Outcome> | undefined {
  if (outcome === undefined) return undefined;
  const given: readonly unknown[] = Array.isArray(outcome) ? outcome : [outcome];
  const wrong = given.findIndex((one) => !OUTCOMES.includes(one as Outcome));
  if (given.length > 0 && wrong < 0) return new Set(given as Outcome[]);
  throw invalid(
    "outcome",
    given.length > 0 ? `got ${quote(given[wrong])}.` : "empty.",
    `Use one of ${OUTCOMES.join(", ")}, or several in a list.`,
  );
}

/** @throws `INVALID_OPTION` */
export function assertCursor(cursor: unknown): void {
  if (cursor === undefined || typeof cursor === "string") return;
  throw invalid("cursor", `got ${quote(cursor)}.`, "Give the cursor of the previous page.");
}

/** Asserts that it can be the id of an entry of a log: Redis refuses numbers beyond 64 bits. @throws `INVALID_OPTION` */
export function assertEntry(id: string | undefined, field = "cursor"): string | undefined {
  assertCursor(id);
  if (id === undefined || /^\d{1,19}-\d{1,19}$/.test(id)) return id;
  throw invalid(
    field,
    `not a ${field}.`,
    `Give ${field === "id" ? "the id of an entry" : "the cursor of the previous page"}.`,
  );
}
