import type { Decision, DueTask, Enqueue } from "./decision.js";
import type { Run } from "./run.js";

/**
 * Decides to retry the failed items of a run, now, as the same occurrence. The schedule and pending occurrences stay
 * unchanged. Undefined if the overlap policy forbids a second run now, or if the task's own retry of that run is still
 * pending.
 */
export function decideItems(
  task: Pick<DueTask, "overlap" | "running" | "pending">,
  run: Pick<Run, "id" | "key" | "nominal">,
  by?: string,
): Decision | undefined {
  const { id, key, nominal } = run;
  if (task.overlap !== "allow" && task.running) return undefined;
  if (task.pending.some((one) => one.key === key)) return undefined;
  const enqueue: Enqueue = { key, nominal, due: nominal, trigger: "items", itemsOf: id, ...(by && { by }) };
  return { enqueue, skipped: [], next: "kept", pending: task.pending };
}
