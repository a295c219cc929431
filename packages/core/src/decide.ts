import { chooseOwed } from "./catch-up.js";
import { type Decision, type DueTask, type Pending, type Skipped, scheduled } from "./decision.js";
import { type Frozen, frozenAt } from "./freeze.js";
import { type Candidate, counted, forbidden, settleOverlap, skip } from "./overlap.js";
import type { Slot, TaskSchedule } from "./task-schedule.js";
import { frozenText } from "./words/reasons.js";

/** With catch-up `skip`, a single occurrence that is later than this counts as missed. Milliseconds. */
export const DEFAULT_CATCH_UP_GRACE = 60_000;
/**
 * The claim's decision. Pure: every node decides the same for the same task at the same time. Pending occurrences that
 * are ready come first, then the schedule. Retries are an exception: they give way to a due time of the schedule, even
 * if that is skipped.
 */
export function decide(task: DueTask, now: number, grace: number = DEFAULT_CATCH_UP_GRACE): Decision {
  if (task.shadow) return decideShadow(task, now, grace);
  const decision = decideDue(task, now, grace);
  return task.quota ? spaced(task, task.quota.interval, decision) : decision;
}

/** Chooses, then applies the overlap policy if an occurrence of the schedule was chosen. */
function decideDue(task: DueTask, now: number, grace: number): Decision {
  const choice = choose(task, now, grace);
  if (!("candidate" in choice)) return choice;
  const decision = settleOverlap(task, choice, now);
  const { delay } = task.schedule;
  return delay === undefined ? decision : delayed(task, choice.candidate, decision, delay, now);
}

function choose(task: DueTask, now: number, grace: number): Decision | Candidate {
  const { slot, schedule, pending } = task;
  const frozen = task.freezes?.length ? frozenAt(task.freezes, now) : undefined;
  if (frozen) return decideFrozen(task, frozen, now);
  const due = slot !== undefined && slot.due <= now;
  // A backfill may have used up `maxRuns` since the slot was planned.
  const spent = schedule.spent(task.fired + counted(pending));
  const outdated = due && !spent && schedule.delay === undefined;
  const ready = pending.find(
    (one) =>
      readyAt(one) <= now &&
      !forbidden(one.overlap ?? task.overlap, task.running) &&
      !(outdated && one.trigger === "retry"),
  );
  if (ready) return fromPending(task, ready);
  if (!due) return { skipped: [], next: "kept", pending };
  // A single time is kept, because a skip would lose the task's only occurrence.
  if (task.quota?.full && !task.once) return passDue(task, slot, now, { reason: "quota" });
  if (spent) return { skipped: [], next: undefined, pending };
  return schedule.delay === undefined
    ? chooseOwed(task, slot, now, grace)
    : chooseDelayed(task, slot, schedule.delay, now, grace);
}

/**
 * For a shadow: decides about the schedule as if no run were open and nothing waited, and skips what it would enqueue. Pending
 * occurrences run: a person asked for them, or they were decided before the task became a shadow.
 */
function decideShadow(task: DueTask, now: number, grace: number): Decision {
  const { slot, pending, schedule } = task;
  const asked = decide({ ...task, shadow: false, slot: undefined }, now, grace);
  if (asked.enqueue || slot === undefined || slot.due > now) return asked;
  const alone = { ...task, shadow: false, running: false, inWay: undefined, pending: [] };
  const { enqueue, ...decision } = decide(alone, now, grace);
  const [shadow = enqueue] = decision.pending;
  const next =
    typeof decision.next === "object" && "afterFinish" in decision.next
      ? schedule.slotAfter(now)
      : decision.next;
  if (!shadow) return { ...decision, next, pending };
  const earlier = decision.skipped.filter(({ from }) => from < shadow.nominal);
  const later = decision.skipped.slice(earlier.length);
  return { ...decision, shadow, skipped: [...earlier, skip("shadow", shadow), ...later], next, pending };
}

/**
 * During a freeze: skips the due times of a schedule, and holds what would be lost, a single time and pending
 * occurrences. The cursor moves on, so that nothing is owed at the end.
 */
function decideFrozen(task: DueTask, frozen: Frozen, now: number): Decision {
  const { slot, pending } = task;
  const held = { skipped: [], next: "kept", pending, frozen } as const;
  if (slot === undefined || slot.due > now) return held;
  // Stored as pending, so that the catch-up policy does not skip it at the end of the freeze.
  const late = task.catchUp === "skip" || task.policies.catchUpLimits?.window !== undefined;
  if (task.once && !late) return held;
  if (task.once) {
    const waits = [...pending, scheduled(task, slot, "schedule")];
    return { skipped: [], cursor: slot.nominal, next: undefined, pending: waits, frozen };
  }
  return { ...passDue(task, slot, now, { reason: "frozen", note: frozenText(frozen) }), frozen };
}

function passDue(
  { schedule, pending }: DueTask,
  slot: Slot,
  now: number,
  why: Pick<Skipped, "reason" | "note">,
): Decision {
  const to = schedule.delay === undefined ? (schedule.latestDue(now) ?? slot.nominal) : slot.nominal;
  const cursor = Math.max(to, slot.nominal);
  const next = schedule.slotAfter(schedule.delay === undefined ? cursor : Math.max(cursor, now));
  return { skipped: [{ ...why, from: slot.nominal, to: cursor }], cursor, next, pending };
}

/**
 * Skips times that follow the enqueued one by less than the quota's interval: the quota was set after the task was
 * stored.
 */
function spaced({ schedule }: DueTask, interval: number, decision: Decision): Decision {
  const { enqueue, next, skipped } = decision;
  if (!enqueue || next === undefined || next === "kept" || !("nominal" in next)) return decision;
  const allowed = enqueue.nominal + interval;
  if (next.nominal >= allowed) return decision;
  const cursor = Math.max(next.nominal, schedule.latest(allowed - 1) ?? next.nominal);
  const passed: Skipped = { reason: "quota", from: next.nominal, to: cursor };
  return { ...decision, skipped: [...skipped, passed], cursor, next: schedule.slotAfter(cursor) };
}

/** Earliest time at which a pending occurrence may be enqueued: never before its own due time, even if the clock went back. */
export function readyAt({ at = 0, due }: Pending): number {
  return Math.max(at, due);
}

function fromPending(task: DueTask, { at: _at, overlap: _overlap, ...enqueue }: Pending): Decision {
  const pending = task.pending.filter(({ key }) => key !== enqueue.key);
  const delay = enqueue.trigger === "manual" ? undefined : task.schedule.delay;
  const spent = delay !== undefined && task.schedule.spent(task.fired + counted([enqueue]));
  const next = delay === undefined ? "kept" : spent ? undefined : { afterFinish: delay };
  return { enqueue, skipped: [], next, pending };
}

/** Chooses for a fixed delay after finish: there is only one time at once, and the next one follows this run's end. */
function chooseDelayed(task: DueTask, slot: Slot, delay: number, now: number, grace: number) {
  const { schedule, pending } = task;
  const { nominal, due } = slot;
  const allowed = schedule.next(nominal - delay);
  if (allowed === undefined) return { skipped: [], cursor: nominal, next: undefined, pending };
  if (allowed !== nominal) {
    const next = { nominal: allowed, due: allowed };
    return { skipped: [skip("excluded", slot)], cursor: nominal, next, pending };
  }
  if (task.catchUp === "skip" && now - due > grace)
    return { skipped: [skip("missed", slot)], cursor: nominal, next: schedule.slotAfter(now), pending };
  return { candidate: scheduled(task, slot, "schedule"), skipped: [], next: undefined };
}

/** Sets the next time of a fixed delay. An occurrence that waits gives it at the end of its own run; a skipped one has no run. */
function delayed({ schedule, fired }: DueTask, slot: Slot, decision: Decision, delay: number, now: number) {
  if (decision.enqueue)
    return { ...decision, next: schedule.spent(fired + 1) ? undefined : { afterFinish: delay } };
  const waits = decision.pending.some(({ nominal }) => nominal === slot.nominal);
  return waits ? decision : { ...decision, next: schedule.slotAfter(now) };
}

/**
 * First time of a schedule when nothing is owed: for a new task, an edited schedule, a resume "from now". Strictly
 * after both the last decided time and now. Undefined if no time is left, or `maxRuns` is used up.
 */
export function firstNext(
  schedule: TaskSchedule,
  from: { cursor?: number | undefined; fired?: number | undefined },
  now: number,
): Slot | undefined {
  return schedule.spent(from.fired ?? 0) ? undefined : schedule.slotAfter(Math.max(from.cursor ?? now, now));
}

/**
 * The next time of a task whose schedule has other times than when it was planned, because a calendar that it names or the
 * time zone data has changed. Owed times stay owed, from the first that still exists. `passed`: past times since the last
 * decided one that exist only since the change, and so were never owed.
 */
export function replan(
  schedule: TaskSchedule,
  from: { nominal?: number | undefined; cursor?: number | undefined; fired: number },
  now: number,
): { slot: Slot | undefined; passed: Skipped | undefined } {
  const owed = from.nominal !== undefined && from.nominal <= now;
  if (owed) {
    const slot = schedule.spent(from.fired) ? undefined : schedule.slotAfter((from.nominal as number) - 1);
    return { slot, passed: undefined };
  }
  const slot = firstNext(schedule, from, now);
  const first = from.cursor === undefined ? undefined : schedule.next(from.cursor);
  if (first === undefined || first > now) return { slot, passed: undefined };
  return { slot, passed: { reason: "superseded", from: first, to: schedule.latest(now) ?? first } };
}
