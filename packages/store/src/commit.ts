import { counted, type Decision, readyAt, type TaskState } from "@carillon/core";
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

interface FieldsSet {
  cursor: number | undefined;
  nominal: number | undefined;
  due: number | undefined;
  /** A run, and how many ms after its end comes the next time. */
  wait: string | undefined;
  pending: string | undefined;
  fired: number | undefined;
  state: TaskState | undefined;
}

/** What a decision makes of a task's hash, and when the task is looked at next. */
export interface Writes {
  /** What is undefined stays as it is. */
  readonly set: Readonly<FieldsSet>;
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
  const set: FieldsSet = {
    cursor: decision.cursor,
    nominal: undefined,
    due: undefined,
    wait: undefined,
    pending: pending.length > 0 ? JSON.stringify(pending) : undefined,
    fired: decision.enqueue && counted([decision.enqueue]) > 0 ? task.fired + 1 : undefined,
    state: undefined,
  };
  const remove: string[] = [];
  let slotDue = next === "kept" ? task.due : undefined;
  let waits = next === "kept" && task.waiting !== undefined;
  if (next === undefined || (next !== "kept" && "afterFinish" in next)) remove.push("nominal", "due");
  if (next !== undefined && next !== "kept") {
    if ("afterFinish" in next) {
      set.wait = `${run} ${next.afterFinish}`;
      waits = true;
    } else {
      set.nominal = next.nominal;
      if (next.due !== next.nominal) set.due = next.due;
      else if (task.due !== task.nominal) remove.push("due");
      slotDue = next.due;
    }
  }
  if (pending.length === 0 && task.pending.length > 0) remove.push("pending");
  const over = slotDue === undefined && !waits && pending.length === 0;
  const finished = over && task.state === "scheduled";
  if (finished) set.state = "finished";
  if (pending.length > 0 && task.state === "finished") set.state = "scheduled";

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
