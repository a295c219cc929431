import { defined } from "./defined.js";
import { CarillonError, invalid, quote } from "./errors.js";
import { assertName } from "./names.js";
import { assertOptions, assertWhole, durationOption } from "./options.js";
import { type Duration, formatDuration, MAX_DURATION } from "./schedule/index.js";
import type { TaskSchedule } from "./task-schedule.js";

/**
 * Scope of a quota: all tasks of the namespace together, those of an owner, or (`owner:*`) those of each owner without
 * a quota of its own.
 */
export type QuotaScope = "all" | `owner:${string}`;

export interface Quota {
  /** Most tasks. */
  readonly tasks?: number | undefined;
  /** Shortest time between two occurrences of a task, in ms. */
  readonly interval?: number | undefined;
  /** Most jobs that may wait in each queue. */
  readonly waiting?: number | undefined;
}

export interface QuotaInput extends Omit<Quota, "interval"> {
  readonly interval?: Duration | undefined;
}

export type Quotas = ReadonlyMap<QuotaScope, Quota>;

/** @throws `INVALID_OPTION`, `INVALID_NAME` */
export function assertQuotaScope(scope: unknown): QuotaScope {
  const owner = /^owner:(.*)$/s.exec(String(scope))?.[1];
  if (owner !== undefined && owner !== "*") assertName(owner, "owner");
  if (owner === undefined && scope !== "all")
    throw invalid(
      "scope",
      `${quote(scope)} is not a scope.`,
      "Give all, owner:NAME, or owner:* for each owner without an own quota.",
    );
  return scope as QuotaScope;
}

/** @throws `INVALID_OPTION` */
export function parseQuota(input: QuotaInput): Quota {
  assertOptions(input, ["tasks", "interval", "waiting"]);
  const { tasks, waiting } = input;
  assertWhole(tasks, "tasks", 0, 1_000_000_000);
  assertWhole(waiting, "waiting", 0, 1_000_000_000);
  const interval = durationOption(input.interval, "interval", 1, MAX_DURATION);
  return defined({ tasks, interval, waiting });
}

/** The quotas that bind an owner, the owner's own first. */
export function quotasOf(owner: string, quotas: Quotas): [scope: QuotaScope, quota: Quota][] {
  const own = quotas.has(`owner:${owner}`) ? (`owner:${owner}` as const) : "owner:*";
  return [own, "all" as const].flatMap((scope) => {
    const quota = quotas.get(scope);
    return quota === undefined ? [] : [[scope, quota] as [QuotaScope, Quota]];
  });
}

/** The shortest interval that is allowed to an owner, in ms; 0: any. */
export function shortestInterval(owner: string, quotas: Quotas): number {
  return Math.max(0, ...quotasOf(owner, quotas).map(([, { interval = 0 }]) => interval));
}

/** Number of occurrences whose gaps are compared. */
const COMPARED = 60;

/** @param from UTC ms; its next occurrences are compared @throws `QUOTA_INTERVAL` */
export function assertInterval(
  owner: string,
  schedule: Pick<TaskSchedule, "next" | "delay">,
  quotas: Quotas,
  from: number,
): void {
  const least = shortestInterval(owner, quotas);
  if (least === 0) return;
  const gap = schedule.delay ?? shortestGap(schedule, from);
  if (gap >= least) return;
  const what = `its times are ${formatDuration(gap)} apart; the quota of ${owner} allows ${formatDuration(least)}.`;
  throw new CarillonError("QUOTA_INTERVAL", what, {
    field: "schedule",
    remedy: "Give a longer interval, or ask an admin for another quota.",
  });
}

function shortestGap(schedule: Pick<TaskSchedule, "next">, from: number): number {
  let shortest = Number.POSITIVE_INFINITY;
  let before = schedule.next(from);
  for (let n = 0; n < COMPARED && before !== undefined; n++) {
    const after = schedule.next(before);
    if (after !== undefined) shortest = Math.min(shortest, after - before);
    before = after;
  }
  return shortest;
}

/** @param scope of the quota @throws `QUOTA_TASKS` */
export function tooManyTasks(scope: QuotaScope, owner: string, most: number): CarillonError {
  const whose = scope === "all" ? "this namespace" : owner;
  return new CarillonError("QUOTA_TASKS", `${whose} may have ${most} tasks, and this would be one more.`, {
    remedy: "Delete tasks that are no longer needed, or ask an admin for another quota.",
  });
}
