import type { TaskState } from "@carillon/core";
import { counted, type Decision, isOver, type RunInWay, readyAt } from "@carillon/core/internal";
import { FACTS } from "../script/facts.js";
import { type ForeignTask, isManual, type StoredTask } from "../task/codec.js";
import type { Freezes } from "./frozen.js";

/** A task as the claim, or a trigger, reads it. */
export interface DueEntry {
  readonly local: string;
  readonly task: StoredTask | ForeignTask | undefined;
  /** The run whose job is not over, and whether it is open here; one that is not was retried outside. */
  readonly running: ({ readonly run: string; readonly open: boolean } & RunInWay) | undefined;
  /** Open runs whose jobs have ended: they are not settled yet. */
  readonly over: readonly string[];
  /** Its time in the due index: since when an occurrence that waits, or the schedule's next one, may be claimed. */
  readonly since?: number | undefined;
  /** The freezes of its queue. */
  readonly frozen?: Freezes | undefined;
  /** Time since which claims of its queue have left something overdue. Undefined: they have not. */
  readonly behindSince?: number | undefined;
}

/**
 * Time from which nothing blocked the enqueued occurrence. A task that was changed after that (a resume, say) counts from the
 * change. Undefined: nothing is enqueued.
 */
export function claimableAt(
  { task, since = 0 }: DueEntry & { task: StoredTask },
  { enqueue }: Decision,
): number | undefined {
  if (!enqueue) return undefined;
  const waited = task.pending.find(({ key }) => key === enqueue.key);
  return Math.max(waited ? Math.max(readyAt(waited), since) : enqueue.due, task.updated);
}

interface FieldsSet {
  cursor: number | undefined;
  nominal: number | undefined;
  due: number | undefined;
  /** A run, and the delay in ms from its end to the next time. */
  wait: string | undefined;
  pending: string | undefined;
  fired: number | undefined;
  state: TaskState | undefined;
}

/** Changes that a decision makes to a task's hash, and the time of the task's next check. */
export interface Writes {
  /** Undefined fields stay unchanged. */
  readonly set: Readonly<FieldsSet>;
  readonly remove: readonly string[];
  /** The schedule's next time depends on the end of this run. */
  readonly waits: boolean;
  /** Undefined: no check until an event asks for one. */
  readonly lookAt: number | undefined;
  /** The open run that pending occurrences wait for. If it has ended, the commit is STALE: nothing else would wake them. */
  readonly awaited: string | undefined;
}

/** @param now the time of the read @param run the run that is enqueued */
export function writesOf(
  { task, running }: DueEntry & { task: StoredTask },
  decision: Decision,
  now: number,
  run: string | undefined,
): Writes {
  const { next, pending, shadow, enqueue = shadow } = decision;
  const set: FieldsSet = {
    cursor: decision.cursor,
    nominal: undefined,
    due: undefined,
    wait: undefined,
    pending: pending.length > 0 ? JSON.stringify(pending) : undefined,
    fired: enqueue && !decision.uncounted && counted([enqueue]) > 0 ? task.fired + 1 : undefined,
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
  const over = isOver({ nominal: slotDue, waits, pending, manual: isManual(task) });
  if (over && task.state === "scheduled") set.state = "finished";
  if (pending.length > 0 && task.state === "finished") set.state = "scheduled";

  const live = run ?? running?.run;
  const frozen = decision.frozen !== undefined;
  const held = pending.filter((one) => readyAt(one) <= now);
  const times = pending.map(readyAt).filter((at) => at > now);
  if (slotDue !== undefined && !(frozen && slotDue <= now)) times.push(slotDue);
  if (decision.frozen && (held.length > 0 || (slotDue !== undefined && slotDue <= now))) {
    times.push(Math.min(decision.frozen.until ?? Number.POSITIVE_INFINITY, now + FACTS.frozenWait));
  }
  if (held.length > 0 && live === undefined && !frozen) times.push(now);
  if (held.length > 0 && run === undefined && running?.open === false) times.push(now + FACTS.waitedFor);
  return {
    set,
    remove,
    waits: next !== undefined && next !== "kept" && "afterFinish" in next,
    lookAt:
      task.state === "paused" || task.moving !== undefined || times.length === 0
        ? undefined
        : Math.min(...times),
    awaited: held.length > 0 && run === undefined && running?.open ? running.run : undefined,
  };
}
