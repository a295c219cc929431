import type { Decision, DueTask, Enqueue } from "./decision.js";
import type { Json } from "./json.js";
import { counted, settleOverlap } from "./overlap.js";
import type { OverlapPolicy } from "./policies.js";

interface Asked {
  readonly key: string;
  readonly by?: string | undefined;
  /** Replace those of the task. */
  readonly overlap?: OverlapPolicy | undefined;
  readonly payload?: Json | undefined;
  readonly trace?: string | undefined;
}

/**
 * Decides a manual occurrence, now. The schedule is unchanged, unless its next time depends on an occurrence that is
 * superseded.
 */
export function decideTrigger(
  task: DueTask,
  now: number,
  { key, by, overlap, payload, trace }: Asked,
): Decision {
  const own = { ...(by && { by }), ...(trace && { trace }), ...(payload !== undefined && { payload }) };
  const candidate: Enqueue = { key, nominal: now, due: now, trigger: "manual", ...own };
  const override = overlap === undefined ? {} : { overlap };
  const answer = settleOverlap(task, { candidate, skipped: [], next: "kept" }, now, override);
  const { cursor: _, ...decision } = answer;
  return { ...decision, next: nextAfterTrigger(task, decision, now) };
}

/**
 * Next time after a trigger. The planned one may depend on an occurrence that is now superseded: on the end of its run,
 * or on its share of `maxRuns`.
 */
function nextAfterTrigger(task: DueTask, { pending, next }: Decision, now: number): Decision["next"] {
  const gone = task.pending.filter((one) => one.trigger !== "manual" && !pending.includes(one));
  if (task.slot !== undefined || gone.length === 0) return next;
  if (task.schedule.spent(task.fired + counted(pending))) return undefined;
  const cursor = Math.max(...gone.map(({ nominal }) => nominal));
  // Times that passed while `maxRuns` was used up are owed again; a delay after finish counts from now.
  return task.schedule.slotAfter(task.schedule.delay === undefined ? cursor : Math.max(cursor, now));
}
