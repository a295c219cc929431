import {
  canonicalSchedule,
  describeSchedule,
  lintSchedule,
  type Schedule,
  type Slot,
  type TaskDefinition,
  type TaskSchedule,
} from "@carillon/core";
import type { Warning } from "./client-types.js";

/** What a task's schedule means. Times in UTC ms. */
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
}

/** What a put would say of it. */
export const NO_NEXT: Warning = {
  code: "NO_NEXT",
  message: "All times of this schedule are past: the task is stored as finished.",
};

/** The next times of hostile schedules take long: what there is after this many ms is the answer. */
const PATIENCE = 250;

export function validationOf(
  compiled: TaskSchedule,
  { schedule, id }: TaskDefinition,
  from: number,
  count: number,
): Validation {
  const next: Slot[] = [];
  const began = performance.now();
  let slot = compiled.slotAfter(from);
  while (slot && next.length < count && performance.now() - began < PATIENCE) {
    next.push(slot);
    slot = compiled.spent(next.length) ? undefined : compiled.slotAfter(slot.nominal);
  }
  return {
    schedule,
    canonical: canonicalSchedule(schedule, id),
    humanized: describeSchedule(schedule, id),
    next,
    exhausted: slot === undefined,
    warnings:
      slot === undefined && next.length === 0 ? [...lintSchedule(schedule), NO_NEXT] : lintSchedule(schedule),
  };
}
