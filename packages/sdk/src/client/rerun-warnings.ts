import type { TaskDefinition } from "@carillon/core";
import { compileLenient, neverReruns, seedOf, TaskSchedule } from "@carillon/core/internal";
import type { Warning } from "./types.js";

/** Warns of a `rerun` that waits so long that the next occurrence always takes its place. */
export function rerunWarnings(task: TaskDefinition): Warning[] {
  const { rerun, schedule } = task;
  if (rerun === undefined) return [];
  if (!neverReruns(rerun, new TaskSchedule(task, compileLenient(schedule, seedOf(task))))) return [];
  const message = "rerun.delay: the next occurrence always comes before the retry, and takes its place.";
  return [
    { code: "NEVER_RERUNS", message, remedy: "Give a delay that is shorter than the schedule's interval." },
  ];
}
