import type { Decision, DueTask, Enqueue, Pending, Skipped } from "./decision.js";
import { type Frozen, frozenAt, frozenText } from "./freeze.js";
import type { Trigger } from "./job.js";
import { counted, forbidden, settleOverlap, withoutRetries } from "./overlap.js";
import { parseDuration } from "./schedule/index.js";
import type { Slot, TaskSchedule } from "./task-schedule.js";

/** With catch-up `skip`, a single occurrence that is later than this counts as missed. Milliseconds. */
export const DEFAULT_CATCH_UP_GRACE = 60_000;
/**
 * The claim's decision. Pure: every node decides the same for the same task at the same time. Pending occurrences that are ready come
 * first, then the schedule. Retries are an exception: they give way to a due time of the schedule, even if that is skipped.
 *
 * There is a backlog if the time after the due one has passed as well. `all` enqueues its times one by one, `one`
 * enqueues the latest, `skip` none (nor a single one that is later than the grace).
 */
export function decide(task: DueTask, now: number, grace: number = DEFAULT_CATCH_UP_GRACE): Decision {
  const decision = decideDue(task, now, grace);
  return task.quota ? spaced(task, task.quota.interval, decision) : decision;
}

function decideDue(task: DueTask, now: number, grace: number): Decision {
  const { slot } = task;
  const frozen = task.freezes?.length ? frozenAt(task.freezes, now) : undefined;
  if (frozen) return decideFrozen(task, frozen, now);
  const due = slot !== undefined && slot.due <= now;
  // A backfill may have used up `maxRuns` since the slot was planned.
  const spent = task.schedule.spent(task.fired + counted(task.pending));
  const outdated = due && !spent && task.schedule.delay === undefined;
  const ready = task.pending.find(
    (one) =>
      isReady(one, now) &&
      !forbidden(one.overlap ?? task.overlap, task.running) &&
      !(outdated && one.trigger === "retry"),
  );
  if (ready) return fromPending(task, ready);
  if (!due) return { skipped: [], next: "kept", pending: task.pending };
  // A single time is kept, because a skip would lose the task's only occurrence.
  if (task.quota?.full && !task.once) return passDue(task, slot, now, { reason: "quota" });
  if (spent) return { skipped: [], next: undefined, pending: task.pending };
  return task.schedule.delay === undefined
    ? decideBacklog(task, slot, now, grace)
    : decideDelayed(task, slot, task.schedule.delay, now, grace);
}

/**
 * During a freeze: skips the due times of a schedule, and holds what would be lost, a single time and pending occurrences. The cursor moves
 * on, so that nothing is owed at the end.
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

/** Skips all due times of a schedule. */
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

function isReady(one: Pending, now: number): boolean {
  return readyAt(one) <= now;
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

function decideBacklog(task: DueTask, slot: Slot, now: number, grace: number): Decision {
  const { schedule, catchUp } = task;
  const first = firstOwed(task, slot, now);
  const skipped: Skipped[] = [];
  if (first?.nominal !== slot.nominal) {
    const to = first === undefined ? schedule.latestDue(now) : schedule.latest(first.nominal - 1);
    skipped.push({ reason: "missed", from: slot.nominal, to: Math.max(to ?? slot.nominal, slot.nominal) });
  }
  if (first === undefined) return passOver(task, skipped);
  const { nominal, due } = first;
  const following = schedule.slotAfter(nominal);
  const backlog = skipped.length > 0 || (following !== undefined && following.due <= now);
  const from = skipped[0]?.from ?? nominal;

  if (catchUp === "skip" && (backlog || now - due > grace)) {
    const last = backlog ? (schedule.latestDue(now) ?? nominal) : nominal;
    return passOver(task, [{ reason: "missed", from, to: last }]);
  }
  if (!backlog || catchUp === "all") {
    const enqueue = scheduled(task, first, backlog ? "catch-up" : "schedule");
    return settleOverlap(task, enqueue, { skipped, next: paced(task, following, now) }, now);
  }

  const latest = Math.max(schedule.latestDue(now) ?? nominal, nominal);
  const missed = { from, to: schedule.latest(latest - 1) ?? from };
  const enqueue = { ...scheduled(task, { nominal: latest, due: schedule.due(latest) }, "catch-up"), missed };
  const next = schedule.slotAfter(latest);
  return settleOverlap(task, enqueue, { skipped: [{ reason: "missed", ...missed }], next }, now);
}

/** The first owed time within the catch-up limits, if there is one. */
function firstOwed({ schedule, catchUp, policies }: DueTask, slot: Slot, now: number): Slot | undefined {
  const { window, max } = policies.catchUpLimits ?? {};
  let first: Slot | undefined = slot;
  // The time's own due time, because the pace may have postponed the slot's.
  if (window !== undefined && schedule.due(slot.nominal) < now - parseDuration(window)) {
    const oldest = now - parseDuration(window);
    const before = schedule.latest(oldest - 1);
    // The jitter of an older time may make it due within the window.
    const late = before !== undefined && before >= slot.nominal && schedule.due(before) >= oldest;
    first = late ? { nominal: before, due: schedule.due(before) } : schedule.slotAfter(oldest - 1);
  }
  if (max !== undefined && catchUp === "all" && first !== undefined) {
    let oldest = schedule.latestDue(now);
    for (let n = 1; n < max && oldest !== undefined && oldest > first.nominal; n++)
      oldest = schedule.latest(oldest - 1);
    if (oldest !== undefined && oldest > first.nominal)
      first = { nominal: oldest, due: schedule.due(oldest) };
  }
  return first === undefined || first.due > now ? undefined : first;
}

/** Postpones the next time of a backlog by the pace, `every`. */
function paced(task: DueTask, next: Slot | undefined, now: number): Slot | undefined {
  const every = task.policies.catchUpLimits?.every;
  if (next === undefined || every === undefined || next.due > now) return next;
  return { nominal: next.nominal, due: now + parseDuration(every) };
}

/** Decides for a fixed delay after finish: there is only one time at once, and the next one follows this run's end. */
function decideDelayed(task: DueTask, slot: Slot, delay: number, now: number, grace: number): Decision {
  const { schedule, pending } = task;
  const { nominal, due } = slot;
  const allowed = schedule.next(nominal - delay);
  if (allowed === undefined) return { skipped: [], cursor: nominal, next: undefined, pending };
  if (allowed !== nominal) {
    const excluded: Skipped = { reason: "excluded", from: nominal, to: nominal };
    return { skipped: [excluded], cursor: nominal, next: { nominal: allowed, due: allowed }, pending };
  }
  if (task.catchUp === "skip" && now - due > grace) {
    const missed: Skipped = { reason: "missed", from: nominal, to: nominal };
    return { skipped: [missed], cursor: nominal, next: schedule.slotAfter(now), pending };
  }
  const decision = settleOverlap(
    task,
    scheduled(task, slot, "schedule"),
    { skipped: [], next: undefined },
    now,
  );
  if (decision.enqueue) {
    return { ...decision, next: schedule.spent(task.fired + 1) ? undefined : { afterFinish: delay } };
  }
  // A buffered occurrence gives the next time at the end of its own run; a skipped one has no run.
  const kept = decision.pending.some(({ nominal: its }) => its === nominal);
  return kept ? decision : { ...decision, next: schedule.slotAfter(now) };
}

function scheduled(task: DueTask, { nominal, due }: Slot, trigger: Trigger): Enqueue {
  return { key: task.keyOf(nominal), nominal, due, trigger };
}

function passOver(task: DueTask, skipped: readonly Skipped[]): Decision {
  const cursor = (skipped.at(-1) as Skipped).to;
  const { others, outdated } = withoutRetries(task);
  return {
    skipped: [...skipped, ...outdated],
    cursor,
    next: task.schedule.slotAfter(cursor),
    pending: others,
  };
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
