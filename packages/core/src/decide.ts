import type { Trigger } from "./job.js";
import type { CatchUpPolicy, OverlapPolicy, Policies } from "./policies.js";
import { parseDuration } from "./schedule/index.js";
import type { Slot, TaskSchedule } from "./task-schedule.js";

/** A lone occurrence later than this is missed, where catch-up is `skip`. Milliseconds. */
export const DEFAULT_GRACE = 60_000;
/** Occurrences that may wait under `queue-all`. */
export const DEFAULT_MAX_QUEUED = 100;

export const SKIP_REASONS = [
  "manual-overlap",
  "manual-superseded",
  "overlap",
  "missed",
  "paused",
  "excluded",
  "superseded",
  "retry-superseded",
] as const;
/** `manual-overlap`: what was asked for by hand; `superseded`: another occurrence took its place; `retry-superseded`: of a run that failed, the next occurrence came first. */
export type SkipReason = (typeof SKIP_REASONS)[number];

/** An occurrence that is to be enqueued later: it waits for a run's end, or for its own time. Kept on the task. */
export interface Pending {
  /** The occurrence's idempotency key. */
  readonly key: string;
  readonly nominal: number;
  readonly due: number;
  readonly trigger: Trigger;
  readonly missed?: { readonly from: number; readonly to: number };
  /** Not before this time. Undefined: as soon as no run is in its way. */
  readonly at?: number;
  /** Instead of the task's policy. */
  readonly overlap?: OverlapPolicy;
}

/** What a claim knows of a due task. Times in UTC ms of Redis time. */
export interface DueTask {
  /** The schedule's next time; undefined: none is left, or it hangs on a run's end. */
  readonly slot: Slot | undefined;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUpPolicy;
  readonly policies: Pick<Policies, "maxQueued" | "catchUpLimits">;
  readonly schedule: TaskSchedule;
  /** How many occurrences of the schedule were enqueued before. */
  readonly fired: number;
  /** Whether an earlier run's job is not finished, by the job's own state. */
  readonly running: boolean;
  readonly pending: readonly Pending[];
  /** The idempotency key of a nominal time. */
  readonly keyOf: (nominal: number) => string;
}

/** Consecutive nominal times that were passed over, both ends included. */
export interface Skipped {
  readonly reason: SkipReason;
  readonly from: number;
  readonly to: number;
}

/** What a task waits for next: a time, or the end of the run that is being enqueued and a delay (ms) after it. */
export type Next = Slot | { readonly afterFinish: number };

/** An occurrence that becomes a job. */
export type Enqueue = Omit<Pending, "at" | "overlap">;

/**
 * What becomes of a due task: at most one occurrence is enqueued, or kept for later; everything else between the old cursor
 * and the new one is skipped with its reason.
 */
export interface Decision {
  readonly enqueue?: Enqueue;
  readonly skipped: readonly Skipped[];
  /** The last nominal time that is now decided; undefined: as before. */
  readonly cursor?: number;
  /** `kept`: as before. Undefined: the schedule has no time left. */
  readonly next: Next | "kept" | undefined;
  /** What waits from here on. */
  readonly pending: readonly Pending[];
  /** The runs in the way are to be cancelled. */
  readonly cancel?: true;
}

/**
 * The claim's decision, pure: the same task at the same time is decided alike on every node. What waits and may go comes
 * first, then the schedule. But for retries: they give way to a due time of the schedule, whatever becomes of that.
 *
 * A backlog exists when the time after the due one has come as well. `all` walks it one by one, `one`
 * enqueues its latest time, `skip` none of it (nor a lone one that is later than the grace).
 */
export function decide(task: DueTask, now: number, grace: number = DEFAULT_GRACE): Decision {
  const { slot } = task;
  const due = slot !== undefined && slot.due <= now;
  // By a backfill, since it was planned.
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
  if (spent) return { skipped: [], next: undefined, pending: task.pending };
  return task.schedule.delay === undefined
    ? decideBacklog(task, slot, now, grace)
    : decideDelayed(task, slot, task.schedule.delay, now, grace);
}

/** A manual occurrence, now: the schedule is left alone, unless what its next time hangs on is superseded. */
export function decideTrigger(
  task: DueTask,
  now: number,
  by: { key: string; overlap?: OverlapPolicy | undefined },
): Decision {
  const enqueue: Enqueue = { key: by.key, nominal: now, due: now, trigger: "manual" };
  const overlap = by.overlap === undefined ? {} : { overlap: by.overlap };
  const answer = settleOverlap(task, enqueue, { skipped: [], next: "kept" }, overlap);
  const { cursor: _, ...decision } = answer;
  return { ...decision, next: nextAfterTrigger(task, decision, now) };
}

/** The next time may have hung on an occurrence that is now superseded: its run's end, or its share of `maxRuns`. */
function nextAfterTrigger(task: DueTask, { pending, next }: Decision, now: number): Decision["next"] {
  const gone = task.pending.filter((one) => one.trigger !== "manual" && !pending.includes(one));
  if (task.slot !== undefined || gone.length === 0) return next;
  const cursor = Math.max(...gone.map(({ nominal }) => nominal));
  return firstNext(task.schedule, { cursor, fired: task.fired + counted(pending) }, now);
}

function isReady(one: Pending, now: number): boolean {
  return readyAt(one) <= now;
}

/** What waits, or is tried again, is not enqueued before its own due time either, should the clock have gone back since. */
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
    return settleOverlap(task, enqueue, { skipped, next: paced(task, following, now) });
  }

  const latest = Math.max(schedule.latestDue(now) ?? nominal, nominal);
  const missed = { from, to: schedule.latest(latest - 1) ?? from };
  const enqueue = { ...scheduled(task, { nominal: latest, due: schedule.due(latest) }, "catch-up"), missed };
  const next = schedule.slotAfter(latest);
  return settleOverlap(task, enqueue, { skipped: [{ reason: "missed", ...missed }], next });
}

/** The first owed time within the limits of catching up; undefined: none is. */
function firstOwed({ schedule, catchUp, policies }: DueTask, slot: Slot, now: number): Slot | undefined {
  const { window, most } = policies.catchUpLimits ?? {};
  let first: Slot | undefined = slot;
  // Its own due time: the pace has put off the slot's.
  if (window !== undefined && schedule.due(slot.nominal) < now - parseDuration(window)) {
    const oldest = now - parseDuration(window);
    const before = schedule.latest(oldest - 1);
    // Jitter may have brought it into the window.
    const late = before !== undefined && before >= slot.nominal && schedule.due(before) >= oldest;
    first = late ? { nominal: before, due: schedule.due(before) } : schedule.slotAfter(oldest - 1);
  }
  if (most !== undefined && catchUp === "all" && first !== undefined) {
    let oldest = schedule.latestDue(now);
    for (let n = 1; n < most && oldest !== undefined && oldest > first.nominal; n++)
      oldest = schedule.latest(oldest - 1);
    if (oldest !== undefined && oldest > first.nominal)
      first = { nominal: oldest, due: schedule.due(oldest) };
  }
  return first === undefined || first.due > now ? undefined : first;
}

/** The walk through a backlog takes one step each `every`. */
function paced(task: DueTask, next: Slot | undefined, now: number): Slot | undefined {
  const every = task.policies.catchUpLimits?.every;
  if (next === undefined || every === undefined || next.due > now) return next;
  return { nominal: next.nominal, due: now + parseDuration(every) };
}

/** A fixed delay after finish: there is never more than one time at once, and the next one follows this run's end. */
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
  const decision = settleOverlap(task, scheduled(task, slot, "schedule"), { skipped: [], next: undefined });
  if (decision.enqueue) {
    return { ...decision, next: schedule.spent(task.fired + 1) ? undefined : { afterFinish: delay } };
  }
  // Passed over, there is no end to wait for; kept for later, its own run's end gives the next time.
  const kept = decision.pending.some(({ nominal: its }) => its === nominal);
  return kept ? decision : { ...decision, next: schedule.slotAfter(now) };
}

function scheduled(task: DueTask, { nominal, due }: Slot, trigger: Trigger): Enqueue {
  return { key: task.keyOf(nominal), nominal, due, trigger };
}

/** Enqueues an occurrence, or does with it what its overlap policy says beside a run that is not final. */
function settleOverlap(
  task: DueTask,
  enqueue: Enqueue,
  rest: Pick<Decision, "skipped" | "next">,
  override: { overlap?: OverlapPolicy } = {},
): Decision {
  const policy = override.overlap ?? task.overlap;
  const { others, outdated } =
    enqueue.trigger === "manual" ? { others: task.pending, outdated: [] } : withoutRetries(task);
  const skipped = [...rest.skipped, ...outdated];
  const cursor = enqueue.nominal;
  const answer = (pending: readonly Pending[], more: Partial<Decision> = {}): Decision => {
    const gone = rest.next !== "kept" && task.schedule.spent(task.fired + counted([enqueue, ...others]));
    const next = more.enqueue || pending.length > others.length ? (gone ? undefined : rest.next) : rest.next;
    return { skipped, cursor, ...more, next, pending };
  };
  if (!forbidden(policy, task.running)) return answer(others, { enqueue });

  const waiting = others.filter(({ at }) => at === undefined);
  const full = policy === "queue-one" ? 1 : (task.policies.maxQueued ?? DEFAULT_MAX_QUEUED);
  if (policy === "cancel-running") {
    const replaced = waiting.map((one) =>
      skip(one.trigger === "manual" ? "manual-superseded" : "superseded", one),
    );
    const kept = others.filter((one) => !waiting.includes(one));
    return answer([...kept, { ...enqueue, ...override }], {
      skipped: [...skipped, ...replaced],
      cancel: true,
    });
  }
  if (policy === "skip" || waiting.length >= full) {
    const reason = enqueue.trigger === "manual" ? "manual-overlap" : "overlap";
    return answer(others, { skipped: [...skipped, skip(reason, enqueue)] });
  }
  return answer([...others, { ...enqueue, ...override }]);
}

function skip(reason: SkipReason, { nominal }: Pick<Pending, "nominal">): Skipped {
  return { reason, from: nominal, to: nominal };
}

/** How many of these `maxRuns` counts: occurrences of the schedule, not retries nor what was asked for by hand. */
export function counted(occurrences: readonly Pick<Pending, "trigger">[]): number {
  return occurrences.filter(({ trigger }) => ["schedule", "catch-up", "backfill"].includes(trigger)).length;
}

/** The next occurrence does what a retry that has not come yet would have done. */
function withoutRetries({ pending }: DueTask): { others: readonly Pending[]; outdated: Skipped[] } {
  const retries = pending.filter(({ trigger }) => trigger === "retry");
  return {
    others: pending.filter((one) => !retries.includes(one)),
    outdated: retries.map((one) => skip("retry-superseded", one)),
  };
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

/** May an occurrence not start beside a run that is not final? */
export function forbidden(overlap: OverlapPolicy, running: boolean): boolean {
  return running && overlap !== "allow";
}

/**
 * Where a schedule starts when nothing is owed: a new task, an edited schedule, a resume "from now". Strictly
 * after both the last decided time and now. Undefined: nothing is left, of its times or of its `maxRuns`.
 */
export function firstNext(
  schedule: TaskSchedule,
  from: { cursor?: number | undefined; fired?: number | undefined },
  now: number,
): Slot | undefined {
  return schedule.spent(from.fired ?? 0) ? undefined : schedule.slotAfter(Math.max(from.cursor ?? now, now));
}

/**
 * The next time of a task whose schedule means something else than when it was planned: a calendar that it names or the
 * time zone data has changed. What is owed stays owed, from its first time that still holds. `passed`: times since the last
 * decided one that are past only now that the schedule means something else; nobody owed them.
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
