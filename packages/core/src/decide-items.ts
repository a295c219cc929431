import type { Decision, DueTask, Enqueue } from "./decision.js";
import type { Run } from "./run.js";

/**
 * Decides to retry the failed items of a run, now, as the same occurrence: the schedule and pending occurrences are unchanged. Undefined
 * if the overlap policy forbids a second run at this time, or the task's own retry of that run waits.
 */
export function decideItems(
  task: Pick<DueTask, "overlap" | "running" | "pending">,
  run: Pick<Run, "id" | "key" | "nominal">,
): Decision | undefined {
  const { id, key, nominal } = run;
  if (task.overlap !== "allow" && task.running) return undefined;
  if (task.pending.some((one) => one.key === key)) return undefined;
  const enqueue: Enqueue = { key, nominal, due: nominal, trigger: "manual", itemsOf: id };
  return { enqueue, skipped: [], next: "kept", pending: task.pending };
}
