import { CarillonError } from "@carillon/core";
import {
  covers,
  type Decision,
  type DueTask,
  frozenAt,
  frozenText,
  occurrenceKey,
  type ScheduleCache,
  shortestInterval,
} from "@carillon/core/internal";
import type { ClaimItem } from "./pack.js";

/** Characters of what waits in a task, with a trigger's own payload: each claim of the task reads and writes all of it. */
const LARGEST_PENDING = 256 * 1024;

/** Input of `decide` for a due task. */
export function dueTask(
  {
    task,
    running,
    frozen,
    behindSince,
  }: Pick<ClaimItem["entry"], "task" | "running" | "frozen" | "behindSince">,
  schedules: ScheduleCache,
): DueTask {
  const { definition, nominal, due } = task;
  return {
    slot: nominal === undefined ? undefined : { nominal, due: due ?? nominal },
    overlap: definition.overlap,
    catchUp: definition.catchUp,
    policies: definition,
    schedule: schedules.get(definition, task.scheduleJson),
    fired: task.fired,
    running: running !== undefined,
    inWay: running,
    pending: task.pending,
    behindSince,
    ...(frozen &&
      frozen.quotas.size > 0 && {
        quota: {
          interval: shortestInterval(definition.owner, frozen.quotas),
          full: frozen.full.has(definition.owner),
        },
      }),
    ...(frozen &&
      frozen.list.length > 0 && { freezes: frozen.list.filter((one) => covers(one, definition)) }),
    once: "at" in definition.schedule,
    shadow: definition.mode === "shadow",
    keyOf: (nominal) => occurrenceKey(definition, nominal),
  };
}

/** @param key of the trigger @throws `PAYLOAD_TOO_LARGE` if it must wait, and there is too much */
export function assertFits(pending: Decision["pending"], key: string, local: string): void {
  if (!pending.some((one) => one.key === key) || JSON.stringify(pending).length <= LARGEST_PENDING) return;
  throw new CarillonError(
    "PAYLOAD_TOO_LARGE",
    `${local} has a run in the way, and no room for this to wait for it.`,
    {
      field: "payload",
      remedy: "Try again when that run has ended, or store the data elsewhere and give a reference to it.",
    },
  );
}

/** @throws `FROZEN` */
export function assertThawed({ freezes = [] }: DueTask, local: string, now: number): void {
  const frozen = frozenAt(freezes, now);
  if (!frozen) return;
  throw new CarillonError("FROZEN", `${local} is ${frozenText(frozen)} (freeze ${frozen.id}).`, {
    remedy: "Wait for the end of the freeze, or lift it.",
  });
}
