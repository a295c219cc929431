import { type Decision, type DueTask, type Skipped, scheduled } from "./decision.js";
import { BEHIND_AT_MOST, type Candidate, withoutRetries } from "./overlap.js";
import { parseDuration } from "./schedule/index.js";
import type { Slot } from "./task-schedule.js";

/**
 * Chooses for a due time of a schedule by the catch-up policy. There is a backlog if the time after the due one has
 * passed as well. `all` enqueues its times one by one, `one` enqueues the latest, `skip` none (nor a single one that is
 * later than the grace). Under `one`, times for which nodes were slow rather than away are late, not missed.
 */
export function chooseOwed(task: DueTask, slot: Slot, now: number, grace: number): Decision | Candidate {
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
  const late = catchUp === "one" && skipped.length === 0 && wereSlow(task, due, now, grace);
  if (!backlog || late || catchUp === "all") {
    const candidate = scheduled(task, first, backlog && !late ? "catch-up" : "schedule");
    return { candidate, skipped, next: paced(task, following, now) };
  }

  const latest = Math.max(schedule.latestDue(now) ?? nominal, nominal);
  const missed = { from, to: schedule.latest(latest - 1) ?? from };
  const newest = { nominal: latest, due: schedule.due(latest) };
  const candidate = { ...scheduled(task, newest, "catch-up"), missed };
  return { candidate, skipped: [{ reason: "missed", ...missed }], next: schedule.slotAfter(latest) };
}

/** Whether nodes were slow for a time, and not away. They claim late for as long as the grace, not longer. */
function wereSlow(task: DueTask, due: number, now: number, grace: number): boolean {
  const known = task.behindSince !== undefined && due >= task.behindSince;
  return now - due <= (known ? Math.max(grace, BEHIND_AT_MOST) : BEHIND_AT_MOST);
}

function passOver(task: DueTask, skipped: readonly Skipped[]): Decision {
  const cursor = (skipped.at(-1) as Skipped).to;
  const { others, outdated } = withoutRetries(task);
  const next = task.schedule.slotAfter(cursor);
  return { skipped: [...skipped, ...outdated], cursor, next, pending: others };
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
