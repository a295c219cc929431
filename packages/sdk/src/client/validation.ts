import {
  canonicalSchedule,
  describeSchedule,
  type Schedule,
  seedOf,
  type TaskDefinition,
} from "@carillon/core";
import { type Slot, scheduleSteps, type TaskSchedule } from "@carillon/core/internal";
import type { PutOutcome } from "@carillon/store";
import { type Preview, timesFrom } from "./preview.js";
import type { Warning } from "./types.js";

export interface ValidateOptions {
  /** The times are strictly after it: ISO 8601 with an offset, a `Date`, or epoch milliseconds. Default: now, by Redis. */
  readonly from?: string | number | Date | undefined;
  /** Number of next times. Default 5, at most 1,000. */
  readonly count?: number | undefined;
}

/** Description of a task's schedule. Times in UTC ms. */
export interface Validation {
  /** Normalised, as it would be stored. */
  readonly schedule: Schedule;
  readonly canonical: string;
  readonly humanized: string;
  /** The next times, each with when it is due. */
  readonly next: readonly Slot[];
  /** Nothing follows these. */
  readonly exhausted: boolean;
  readonly warnings: readonly Warning[];
  /** A put of the task would do this. */
  readonly outcome: PutOutcome;
  /** The differences that it would make. */
  readonly preview: Preview;
}

/** Warning about a task without future times, as a put reports it. */
export const NO_NEXT: Warning = {
  code: "NO_NEXT",
  message: "All times of this schedule are past: the task is stored as finished.",
  remedy: "Give a time to come, or a later end.",
};

interface ValidationOptions {
  readonly from: number;
  readonly count: number;
  readonly warnings: readonly Warning[];
  /** Warnings about what it lacks to run; they do not matter if it never runs. */
  readonly lacks: readonly Warning[];
}

export function validationOf(
  compiled: TaskSchedule,
  task: TaskDefinition,
  { from, count, warnings, lacks }: ValidationOptions,
): Omit<Validation, "outcome" | "preview"> {
  const { schedule } = task;
  const seed = seedOf(task);
  const first = compiled.slotAfter(from);
  const { times: next, exhausted } = timesFrom(compiled, scheduleSteps(schedule), { first, count });
  const isPast = exhausted && next.length === 0 && !("manual" in schedule);
  return {
    schedule,
    canonical: canonicalSchedule(schedule, seed),
    humanized: describeSchedule(schedule, seed),
    next,
    exhausted,
    warnings: [...warnings, ...(isPast ? [NO_NEXT] : lacks)],
  };
}
