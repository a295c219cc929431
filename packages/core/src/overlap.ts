import type { Decision, DueTask, Enqueue, Pending, RunInWay, Skipped, SkipReason } from "./decision.js";
import type { OverlapPolicy } from "./policies.js";

/**
 * Lateness in ms up to which nodes, workers or Redis were slow in any case. Beyond it they were missing, unless more is known of
 * nodes. An occurrence within it is late and not missed. With overlap `skip`, it waits for an earlier run that workers were slow to begin; a run that is later than
 * this also does the work of the occurrences after it.
 */
export const BEHIND_AT_MOST = 5_000;
/** Most occurrences that may wait under `queue-all`. */
export const DEFAULT_MAX_QUEUED = 100;

/** Whether an occurrence may not start while a run is not final. */
export function forbidden(overlap: OverlapPolicy, running: boolean): boolean {
  return running && overlap !== "allow";
}

/** `wait`: the occurrence starts after the run that blocks it; `cancel`: it also cancels that run. */
export type OverlapAnswer = "start" | "skip" | "wait" | "cancel";

export function overlapAnswer(policy: OverlapPolicy, running: boolean): OverlapAnswer {
  if (!forbidden(policy, running)) return "start";
  if (policy === "skip") return "skip";
  return policy === "cancel-running" ? "cancel" : "wait";
}

/** An occurrence that the overlap policy starts, keeps or skips; the rest holds in each case. */
export interface Candidate extends Pick<Decision, "skipped" | "next"> {
  readonly candidate: Enqueue;
}

/** Enqueues the candidate, or applies its overlap policy if a run is not final. */
export function settleOverlap(
  task: DueTask,
  { candidate: enqueue, ...rest }: Candidate,
  now: number,
  override: { overlap?: OverlapPolicy } = {},
): Decision {
  const policy = override.overlap ?? task.overlap;
  const { others, outdated } =
    enqueue.trigger === "manual" ? { others: task.pending, outdated: [] } : withoutRetries(task);
  const skipped = [...rest.skipped, ...outdated];
  const cursor = enqueue.nominal;
  const answer = (pending: readonly Pending[], more: Partial<Decision> = {}): Decision => {
    const counts = rest.next !== "kept" && (more.enqueue || pending.length > others.length);
    const spent = counts && task.schedule.spent(task.fired + counted([enqueue, ...others]));
    return { skipped, cursor, ...more, next: spent ? undefined : rest.next, pending };
  };
  const asked = overlapAnswer(policy, task.running);
  if (asked === "start") return answer(others, { enqueue });

  const waiting = others.filter(({ at }) => at === undefined);
  // Every owed time is wanted under `all`, so as many may wait.
  const many = policy === "queue-all" || (policy === "skip" && task.catchUp === "all");
  const full = many ? (task.policies.maxQueued ?? DEFAULT_MAX_QUEUED) : 1;
  if (asked === "cancel") {
    const replaced = waiting.map((one) =>
      skip(one.trigger === "manual" ? "manual-superseded" : "superseded", one),
    );
    const kept = others.filter((one) => !waiting.includes(one));
    return answer([...kept, { ...enqueue, ...override }], {
      skipped: [...skipped, ...replaced],
      cancel: true,
    });
  }
  const behind = enqueue.trigger !== "manual" && isBehind(task.inWay, enqueue.nominal, now);
  // A run that was caught up is late because nodes were away: workers have had it only since it was enqueued.
  const { nominal = now, enqueued = nominal } = task.inWay ?? {};
  const recent = now - Math.max(nominal, enqueued) <= BEHIND_AT_MOST;
  const late = asked === "skip" && behind && recent && task.catchUp !== "skip";
  if ((asked === "skip" && !late) || waiting.length >= full) {
    const reason = enqueue.trigger === "manual" ? "manual-overlap" : behind ? "behind" : "overlap";
    return answer(others, { skipped: [...skipped, skip(reason, enqueue)] });
  }
  return answer([...others, { ...enqueue, ...override }]);
}

/**
 * Whether workers were slow: the run in the way has not begun, or has been running for less than half of the time
 * between its nominal time and this one.
 */
function isBehind(run: RunInWay | undefined, nominal: number, now: number): boolean {
  if (run === undefined) return false;
  return run.begun === undefined || now - run.begun < (nominal - run.nominal) / 2;
}

export function skip(reason: SkipReason, { nominal }: Pick<Pending, "nominal">): Skipped {
  return { reason, from: nominal, to: nominal };
}

/** Number of these that count towards `maxRuns`: occurrences of the schedule, not retries or manual triggers. */
export function counted(occurrences: readonly Pick<Pending, "trigger">[]): number {
  return occurrences.filter(({ trigger }) => ["schedule", "catch-up", "backfill"].includes(trigger)).length;
}

/** Drops pending retries, because the next occurrence takes their place. */
export function withoutRetries({ pending }: DueTask): { others: readonly Pending[]; outdated: Skipped[] } {
  const retries = pending.filter(({ trigger }) => trigger === "retry");
  return {
    others: pending.filter((one) => !retries.includes(one)),
    outdated: retries.map((one) => skip("retry-superseded", one)),
  };
}
