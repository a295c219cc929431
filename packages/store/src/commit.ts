import { counted, type Decision, readyAt } from "@carillon/core";
import type { ForeignTask, StoredTask } from "./task-codec.js";

/** A task as the claim, or a trigger, reads it. */
export interface DueEntry {
  readonly local: string;
  readonly task: StoredTask | ForeignTask | undefined;
  /** The run whose job is not over, and whether it is open here; one that is not was retried outside. */
  readonly running: { readonly run: string; readonly open: boolean } | undefined;
  /** Runs whose jobs are over although nobody settled them yet, or that could be retried outside. */
  readonly over: readonly string[];
}

/** What a decision makes of a task's hash, and when the task is looked at next. */
export interface Writes {
  readonly set: readonly (readonly [field: string, value: string | number])[];
  readonly remove: readonly string[];
  /** The schedule's next time hangs on this run's end. */
  readonly waits: boolean;
  /** Nothing is left to do. */
  readonly finished: boolean;
  /** Undefined: not before someone says so. */
  readonly lookAt: number | undefined;
  /** What waits does so for this run's end: without it nobody would wake it. */
  readonly awaited: string | undefined;
}

/** A job that came back to life outside tells nobody of its end: look again after, in ms. */
const REVIVED_LOOK = 1_000;

/** @param now the time of the read @param run the run that is enqueued */
export function writesOf(
  { task, running }: DueEntry & { task: StoredTask },
  decision: Decision,
  now: number,
  run: string | undefined,
): Writes {
  const { next, pending } = decision;
  const set: [string, string | number][] = [];
  const remove: string[] = [];
  let slotDue = next === "kept" ? task.due : undefined;
  let waits = next === "kept" && task.waiting !== undefined;
  if (decision.cursor !== undefined) set.push(["cursor", decision.cursor]);
  if (next === undefined || (next !== "kept" && "afterFinish" in next)) remove.push("nominal", "due");
  if (next !== undefined && next !== "kept") {
    if ("afterFinish" in next) {
      set.push(["wait", `${run} ${next.afterFinish}`]);
      waits = true;
    } else {
      set.push(["nominal", next.nominal]);
      if (next.due !== next.nominal) set.push(["due", next.due]);
      else if (task.due !== task.nominal) remove.push("due");
      slotDue = next.due;
    }
  }
  if (pending.length > 0) set.push(["pending", JSON.stringify(pending)]);
  else if (task.pending.length > 0) remove.push("pending");
  if (decision.enqueue && counted([decision.enqueue]) > 0) set.push(["fired", task.fired + 1]);
  const over = slotDue === undefined && !waits && pending.length === 0;
  const finished = over && task.state === "scheduled";
  if (finished) set.push(["state", "finished"]);
  if (pending.length > 0 && task.state === "finished") set.push(["state", "scheduled"]);

  const live = run ?? running?.run;
  const held = pending.filter((one) => readyAt(one) <= now);
  const times = pending.map(readyAt).filter((at) => at > now);
  if (slotDue !== undefined) times.push(slotDue);
  if (held.length > 0 && live === undefined) times.push(now);
  if (held.length > 0 && run === undefined && running?.open === false) times.push(now + REVIVED_LOOK);
  return {
    set,
    remove,
    waits: next !== undefined && next !== "kept" && "afterFinish" in next,
    finished,
    lookAt: task.state === "paused" || times.length === 0 ? undefined : Math.min(...times),
    awaited: held.length > 0 && run === undefined && running?.open ? running.run : undefined,
  };
}
