import { CarillonError, invalid } from "./errors.js";
import { assertName, type TaskName } from "./names.js";
import { assertOptions, durationOption } from "./options.js";
import {
  type CompiledSchedule,
  compileSchedule,
  type Duration,
  MAX_DURATION,
  reviewSchedule,
  type Schedule,
  scheduleSchema,
} from "./schedule/index.js";
import type { ScheduleInput } from "./schedule/input.js";
import { fromZod } from "./task.js";

/** Scope of a freeze: tasks that match all given fields; `all` alone means every task. */
export interface FreezeScope {
  readonly owner?: string | undefined;
  readonly tag?: string | undefined;
  readonly queue?: string | undefined;
  /** Only these tasks. */
  readonly tasks?: readonly TaskName[] | undefined;
  /** Every task of the namespace. Default: false. */
  readonly all?: boolean | undefined;
}

/** A freeze as stored. Times in UTC ms. */
export interface Freeze extends FreezeScope {
  readonly id: string;
  /** Begin of the freeze. Recurring windows before it do not count. */
  readonly from: number;
  /** End of the freeze. Absent: it lasts until someone lifts it. */
  readonly until?: number;
  /** Begins of recurring windows. */
  readonly schedule?: Schedule;
  /** Length of each recurring window, in ms. */
  readonly length?: number;
  readonly note?: string;
  /** The name of the person or service that froze. */
  readonly by?: string;
  readonly created: number;
}

/** A freeze that holds at some time, as skips and errors describe it. */
export interface Frozen extends Pick<Freeze, "id" | "by" | "note"> {
  /** End of this freeze or window, UTC ms. Undefined: until it is lifted. */
  readonly until: number | undefined;
}

const compiled = new WeakMap<Freeze, CompiledSchedule>();

function windowsOf(freeze: Freeze): CompiledSchedule | undefined {
  if (freeze.schedule === undefined) return undefined;
  let schedule = compiled.get(freeze);
  if (!schedule) {
    schedule = compileSchedule(freeze.schedule, freeze.id, {});
    compiled.set(freeze, schedule);
  }
  return schedule;
}

/** The freeze that holds at a time; of several, the one that ends last. */
export function frozenAt(freezes: readonly Freeze[], now: number): Frozen | undefined {
  let last: Frozen | undefined;
  for (const freeze of freezes) {
    const until = endAt(freeze, now);
    if (until === undefined) continue;
    if (last && (last.until ?? Number.POSITIVE_INFINITY) >= until) continue;
    const { id, by, note } = freeze;
    const names = { ...(by && { by }), ...(note && { note }) };
    last = { id, ...names, until: until === Number.POSITIVE_INFINITY ? undefined : until };
  }
  return last;
}

/** End of a freeze that holds now; infinite if it has none. Undefined: the freeze does not hold now. */
function endAt(freeze: Freeze, now: number): number | undefined {
  if (now < freeze.from) return undefined;
  const windows = windowsOf(freeze);
  if (windows === undefined) {
    const until = freeze.until ?? Number.POSITIVE_INFINITY;
    return now < until ? until : undefined;
  }
  const begin = windows.latest(now);
  const end = begin === undefined ? undefined : begin + (freeze.length ?? 0);
  return end !== undefined && now < end ? end : undefined;
}

/** Start of the first freeze after a time. A decision made before that start must not be committed after it. */
export function nextFreeze(freezes: readonly Freeze[], after: number): number | undefined {
  const begins = freezes.flatMap((freeze) => {
    if (freeze.from > after && freeze.schedule === undefined) return [freeze.from];
    return windowsOf(freeze)?.next(Math.max(after, freeze.from - 1)) ?? [];
  });
  return begins.length === 0 ? undefined : Math.min(...begins);
}

/** Whether a freeze can never hold again. */
export function isThawed(freeze: Freeze, now: number): boolean {
  if (freeze.schedule === undefined) return freeze.until !== undefined && freeze.until <= now;
  return endAt(freeze, now) === undefined && nextFreeze([freeze], now) === undefined;
}

/** @throws `INVALID_OPTION` unless a scope names tasks, an owner, a tag or a queue, or all tasks */
export function assertFreezeScope({ owner, tag, queue, tasks, all }: FreezeScope): void {
  const names = Object.entries({ owner, tag, queue }).filter(([, value]) => value !== undefined);
  for (const [field, value] of names) assertName(value, field);
  const given = tasks === undefined ? names : [...names, tasks];
  if (given.length > 0 !== (all ?? false)) return;
  throw new CarillonError(
    "INVALID_OPTION",
    all
      ? "all is given together with tasks, an owner, tag or queue."
      : "no tasks, owner, tag, queue or all is given.",
    { remedy: "Select tasks by one of these." },
  );
}

/** Recurring windows of a freeze. @throws `INVALID_OPTION`, `INVALID_SCHEDULE` and others of schedules, `NEVER_FIRES` */
export function parseWindows(
  schedule: ScheduleInput,
  length: Duration | undefined,
): { schedule: Schedule; length: number } {
  if (length === undefined)
    throw invalid("for", "missing: windows need a length.", 'Give a duration, such as "2h".');
  const parsed = scheduleSchema.safeParse(schedule);
  if (!parsed.success) throw fromZod(parsed.error, "INVALID_SCHEDULE");
  const checked = parsed.data as Schedule;
  assertOptions(checked, ["cron", "calendar", "timezone"] as never, "schedule");
  const { never } = reviewSchedule(checked);
  if (never !== undefined) throw new CarillonError("NEVER_FIRES", never, { field: "schedule" });
  return { schedule: checked, length: durationOption(length, "for", 1_000, MAX_DURATION) };
}
