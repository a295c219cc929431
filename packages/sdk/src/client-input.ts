import {
  assertOptions,
  assertWhole,
  CarillonError,
  lintSchedule,
  type ParsedTask,
  PRINTABLE,
  quote,
  TASK_STATES,
  type TaskInput,
  type TaskName,
} from "@carillon/core";
import { ABSENT, type PutResult } from "@carillon/store";
import type { EnqueueOptions, Put, PutOptions, Warning } from "./client-types.js";
import { roundedInstant } from "./instant.js";
import { type AnyTaskType, isTaskType, type TypedTask } from "./task-type.js";
import { NO_NEXT } from "./validation.js";

export function fill<Type extends AnyTaskType>(type: Type, task: TypedTask<Type>): TaskInput {
  return { ...task, queue: task.queue ?? type.queue, type: type.type };
}

/** Whether a put was given a task type, or what was meant as one, before its task. */
export function isTyped(first: unknown, second: unknown): boolean {
  return second !== undefined && (isTaskType(first) || "schedule" in Object(second));
}

const REVISION = /^[\w-]{22}$/;

/** @throws `INVALID_OPTION` */
export function assertRevision(options: PutOptions): void {
  assertOptions(options, ["ifRevision"]);
  const { ifRevision } = options;
  if (ifRevision === undefined || ifRevision === ABSENT) return;
  if (typeof ifRevision === "string" && REVISION.test(ifRevision)) return;
  throw new CarillonError("INVALID_OPTION", `${quote(ifRevision)} is no revision.`, {
    field: "ifRevision",
    remedy: `Give the revision of the task as get says it, or ${ABSENT}.`,
  });
}

export function putView(result: PutResult, { definition }: ParsedTask): Put {
  const warnings: Warning[] = [...lintSchedule(definition.schedule)];
  if (result.state === "finished") {
    warnings.push(NO_NEXT);
  }
  return {
    task: result.name,
    outcome: result.outcome,
    state: result.state,
    nextExecution: result.due,
    warnings,
  };
}

/** Ten years, in ms. */
const LONGEST_DELAY = 10 * 365 * 86_400_000;

export function moment({ at, delay }: EnqueueOptions, now: number): number {
  if (at !== undefined && delay !== undefined) {
    throw new CarillonError("INVALID_OPTION", "given beside at.", {
      field: "delay",
      remedy: "Give one of the two.",
    });
  }
  if (delay !== undefined) {
    if (Number.isInteger(delay) && delay >= 0 && delay <= LONGEST_DELAY) return now + delay;
    throw new CarillonError("INVALID_OPTION", `got ${quote(delay)}.`, {
      field: "delay",
      remedy: "Give whole milliseconds, 300000 for five minutes; at most ten years of them.",
    });
  }
  if (at === undefined) return now;
  return roundedInstant(at, "at");
}

export function wholeNumber(value: number, field: string, least: number, most: number): number {
  assertWhole(value, field, least, most, "INVALID_FILTER");
  return value;
}

export function shortText(value: string | undefined, field: string): string {
  if (value === undefined) return "";
  if (typeof value !== "string") {
    throw new CarillonError("INVALID_OPTION", "not a text.", {
      field,
      remedy: "Give a text of at most 500 characters.",
    });
  }
  if (value.length > 500) {
    throw new CarillonError("INVALID_OPTION", "longer than 500 characters.", {
      field,
      remedy: "Shorten it.",
    });
  }
  if (PRINTABLE.test(value)) return value;
  throw new CarillonError("INVALID_OPTION", "has control characters in it.", {
    field,
    remedy: "Leave them out.",
  });
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

export function resumeFrom(value: "now" | "catch-up" | undefined): "now" | "catch-up" {
  if (value === undefined || value === "now" || value === "catch-up") return value ?? "now";
  throw new CarillonError("INVALID_OPTION", `got ${quote(value)}.`, {
    field: "from",
    remedy: "Use now or catch-up.",
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

/** @throws `INVALID_FILTER` */
export function assertState(state: unknown): void {
  if (state === undefined || TASK_STATES.some((one) => one === state)) return;
  throw new CarillonError("INVALID_FILTER", `got ${quote(state)}.`, {
    field: "state",
    remedy: `Use one of ${TASK_STATES.join(", ")}.`,
  });
}

/** @throws `INVALID_FILTER` */
export function assertCursor(cursor: unknown): void {
  if (cursor === undefined || typeof cursor === "string") return;
  throw new CarillonError("INVALID_FILTER", `got ${quote(cursor)}.`, {
    field: "cursor",
    remedy: "Give back the cursor of the page before.",
  });
}

export function runNotFound(id: unknown): CarillonError {
  return new CarillonError("RUN_NOT_FOUND", `there is no run ${quote(id)}.`, {
    remedy: "It may have gone with its task, or with its time.",
  });
}

export function calendarNotFound(name: string): CarillonError {
  return new CarillonError("CALENDAR_NOT_FOUND", `there is no calendar ${quote(name)}.`, {
    remedy: "List the calendars to see what there is.",
  });
}
