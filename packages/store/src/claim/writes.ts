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
  readonly cursor: number | undefined;
  readonly nominal: number | undefined;
  readonly due: number | undefined;
  /** A run, and the delay in ms from its end to the next time. */
  readonly wait: string | undefined;
  readonly pending: string | undefined;
  readonly fired: number | undefined;
  readonly state: TaskState | undefined;
}

/** Changes that a decision makes to a task's hash, and the time of the task's next check. */
export interface Writes {
  /** Undefined fields stay unchanged. */
  readonly set: FieldsSet;
  readonly remove: readonly string[];
  /** The schedule's next time depends on the end of this run. */
  readonly waits: boolean;
  /** Undefined: no check until an event asks for one. */
  readonly checkAt: number | undefined;
  /** The open run that pending occurrences wait for. If it has ended, the commit is STALE: nothing else would wake them. */
  readonly awaited: string | undefined;
}

/** @param now the time of the read @param run the run that is enqueued */
export function writesOf(
  entry: DueEntry & { task: StoredTask },
  decision: Decision,
  now: number,
  run: string | undefined,
): Writes {
  const { due, ...fields } = fieldsOf(entry.task, decision, run);
  return { ...fields, waits: fields.set.wait !== undefined, ...checkOf(entry, decision, due, now, run) };
}

/** The changes, and when the schedule's next time is due after them. */
function fieldsOf(task: StoredTask, decision: Decision, run: string | undefined) {
  const { next, pending, shadow, enqueue = shadow } = decision;
  const kept = next === "kept";
  const delay = !kept && next && "afterFinish" in next ? next.afterFinish : undefined;
  const slot = !kept && next && "nominal" in next ? next : undefined;
  const due = kept ? task.due : slot?.due;
  const remove: string[] = [];
  if (!kept && !slot) remove.push("nominal", "due");
  if (slot && slot.due === slot.nominal && task.due !== task.nominal) remove.push("due");
  if (pending.length === 0 && task.pending.length > 0) remove.push("pending");
  const waits = delay !== undefined || (kept && task.waiting !== undefined);
  const over = isOver({ nominal: due, waits, pending, manual: isManual(task) });
  const revived = pending.length > 0 && task.state === "finished";
  const set: FieldsSet = {
    cursor: decision.cursor,
    nominal: slot?.nominal,
    due: slot?.due === slot?.nominal ? undefined : slot?.due,
    wait: delay === undefined ? undefined : `${run} ${delay}`,
    pending: pending.length > 0 ? JSON.stringify(pending) : undefined,
    fired: enqueue && !decision.uncounted && counted([enqueue]) > 0 ? task.fired + 1 : undefined,
    state: revived ? "scheduled" : over && task.state === "scheduled" ? "finished" : undefined,
  };
  return { set, remove, due };
}

function checkOf(
  { task, running }: DueEntry & { task: StoredTask },
  { pending, frozen }: Decision,
  due: number | undefined,
  now: number,
  run: string | undefined,
): Pick<Writes, "checkAt" | "awaited"> {
  const held = pending.some((one) => readyAt(one) <= now);
  const times = pending.map(readyAt).filter((at) => at > now);
  if (due !== undefined && !(frozen && due <= now)) times.push(due);
  if (frozen && (held || (due !== undefined && due <= now)))
    times.push(Math.min(frozen.until ?? Number.POSITIVE_INFINITY, now + FACTS.frozenWait));
  const free = held && run === undefined;
  if (free && !running && !frozen) times.push(now);
  if (free && running?.open === false) times.push(now + FACTS.waitedFor);
  const rests = task.state === "paused" || task.moving !== undefined || times.length === 0;
  return {
    checkAt: rests ? undefined : Math.min(...times),
    awaited: free && running?.open ? running.run : undefined,
  };
}
