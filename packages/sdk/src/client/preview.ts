import type { Json, ParsedTask, TaskDefinition } from "@carillon/core";
import { type Slot, scheduleSteps, type TaskSchedule } from "@carillon/core/internal";
import type { PlannedPut } from "@carillon/store";
import { differenceOf } from "./change.js";

/** A put's effect on what is stored. Times in UTC ms. */
export interface Preview {
  /** Fields that differ, as they are stored; undefined for a new task. A difference of notation, `"1h"` for 3600000, is none. */
  readonly before?: Readonly<Record<string, Json>> | undefined;
  /** The same fields, and those of a new task, as they would be stored. */
  readonly after?: Readonly<Record<string, Json>> | undefined;
  /** The next five times as they are, and as they would be. */
  readonly times: { readonly before: readonly Slot[]; readonly after: readonly Slot[] };
  /** Owed times that another schedule gives up, both ends included. */
  readonly givenUp?: { readonly from: number; readonly to: number } | undefined;
}

export type Schedules = { get(task: TaskDefinition): TaskSchedule };

/** Times of each side of a preview. */
const SHOWN = 5;
/** Steps of the schedule for one answer: a plain one has 1,000 times, the largest 39. */
const MOST_STEPS = 10_000;

/** Times from a first one on, and whether others follow. */
export function timesFrom(
  schedule: TaskSchedule,
  steps: number,
  { first, count, fired = 0 }: { first: Slot | undefined; count: number; fired?: number | undefined },
): { times: Slot[]; exhausted: boolean } {
  const times: Slot[] = [];
  const most = Math.min(count, Math.ceil(MOST_STEPS / steps));
  let slot = first;
  while (slot && times.length < most) {
    times.push(slot);
    slot = schedule.spent(fired + times.length) ? undefined : schedule.slotAfter(slot.nominal);
  }
  return { times, exhausted: slot === undefined };
}

export function previewOf(
  schedules: Schedules,
  { outcome, stored, slot, givenUp }: PlannedPut,
  { definition }: ParsedTask,
): Preview {
  const shown = (task: TaskDefinition, first: Slot | undefined) =>
    timesFrom(schedules.get(task), scheduleSteps(task.schedule), {
      first,
      count: SHOWN,
      fired: stored?.fired,
    }).times;
  const after = shown(definition, slot);
  return {
    ...(outcome !== "unchanged" && differenceOf(stored?.definition, definition)),
    times: { before: stored ? beforeOf(shown, stored) : [], after },
    ...(givenUp && { givenUp }),
  };
}

function beforeOf(
  shown: (task: TaskDefinition, first: Slot | undefined) => Slot[],
  { definition, nominal, due = nominal }: NonNullable<PlannedPut["stored"]>,
): Slot[] {
  try {
    return shown(definition, nominal === undefined || due === undefined ? undefined : { nominal, due });
  } catch {
    // Its calendar was deleted; the put may remove the reference.
    return [];
  }
}
