import type { Imported, TheirTimes } from "@carillon/ops/internal";
import { compileSchedule, type Schedule, scheduleSchema, seedOf } from "@carillon/sdk/schedule";
import { CronExpressionParser } from "cron-parser";
import cronParser4 from "cron-parser-4";
import { mergeTimes, type NextTime } from "../merge-times.js";
import { localIso, utcIso } from "../times.js";

/** Comparison of a schedule's times there and here. */
export interface Verdict {
  /** Times compared, those of one side included. */
  readonly compared: number;
  /** UTC ms: the end of what was compared. */
  readonly until: number;
  /** Not each time until then: those of a day, the days that have any, all on days on which clocks change, and those around its end. */
  readonly sampled: boolean;
  /** The first times of one side only, at most 3. */
  readonly differences: readonly { readonly time: number; readonly only: "ours" | "theirs" }[];
  readonly reason?: string | undefined;
}

const DAY = 86_400_000;
const SPAN = 731 * DAY;
/** Times of an interval; the most of a cron expression, once for each in two years: it is compared whole (cron-parser 4 takes some ms for one). */
const [FIRST, FEW] = [12, 110];
/** Most times of a day and a bit. */
const FIRST_DAY = 300;
const MOST_DIFFERENCES = 3;

/** Verifies many: what several schedules share is computed once. */
export function verifier(now: number): (one: Imported) => Verdict | undefined {
  const known = new Map<string, Verdict | undefined>();
  return (one) => {
    const key = JSON.stringify([one.task?.schedule, one.theirs]);
    if (!known.has(key)) known.set(key, verify(one, now));
    return known.get(key);
  };
}

/** Computes two years twice, by the library that the other system uses and by Carillon. Undefined: there is no such library here. */
export function verify({ task, theirs }: Imported, now: number): Verdict | undefined {
  if (!task || !theirs) return undefined;
  const schedule = scheduleSchema.parse(task.schedule) as Schedule;
  const ours = ourTimes(schedule, seedOf(task));
  const compared = new Comparison(ours, theirTimes(theirs));
  const [until, { end }] = [now + SPAN, theirs];
  const sampled = "cron" in theirs && !isFew(ours, now, until);
  // Intervals with the same first times are the same until they end.
  const whole = compared.walk(now, sampled ? now + 1.1 * DAY : until, "cron" in theirs ? FIRST_DAY : FIRST);
  if (sampled) {
    for (const [from, to] of clockChanges(theirs.timezone, now, until))
      compared.walk(from, to, 2 * FIRST_DAY);
    if ("cron" in schedule && !/(?:\s\*){3}$/.test(theirs.cron))
      compareDays(schedule, theirs, compared).walk(now, until, SPAN / DAY);
  }
  if (end !== undefined && (sampled || !whole))
    compared.walk(Math.max(now, end - ("cron" in theirs ? DAY : 2 * theirs.every)), until, FIRST_DAY);
  const { count, differences } = compared;
  const first = [...differences].map(([time, only]) => ({ time, only })).slice(0, MOST_DIFFERENCES);
  return {
    compared: count,
    until,
    sampled,
    differences: first,
    reason: first[0] && reasonOf(theirs, first[0].time),
  };
}

/** Weekly and rarer, also for two days a month. */
function isFew(ours: NextTime, from: number, until: number): boolean {
  let time = from;
  for (let count = 0; count <= FEW; count++) {
    time = ours(time);
    if (time > until) return true;
  }
  return false;
}

/** Days that have times, by their midnights in UTC: all that a zone or a time of day changes is compared elsewhere. */
function compareDays(
  schedule: Schedule & { cron: string },
  theirs: Extract<TheirTimes, { cron: string }>,
  into: Comparison,
): Comparison {
  const days = (cron: string) => cron.replace(/^(?:\S+\s+)?\S+\s+\S+(?=(?:\s+\S+){3}$)/, "0 0");
  const utc = { timezone: "UTC" };
  const next = theirTimes({ ...theirs, ...utc, cron: days(theirs.cron), first: undefined });
  const except = schedule.except?.map((one) => ("calendar" in one ? { ...one, ...utc } : one));
  return new Comparison(
    ourTimes({ ...schedule, ...utc, cron: days(schedule.cron), ...(except && { except }) }, ""),
    // The library steps by hours; no time is between two midnights.
    (after) => next((Math.floor(after / DAY) + 1) * DAY - 1),
    into,
  );
}

/** Walks through the times of both sides, as often as wanted. */
class Comparison {
  count = 0;
  readonly differences: Map<number, "ours" | "theirs">;

  constructor(
    readonly ours: NextTime,
    readonly theirs: NextTime,
    into?: Comparison,
  ) {
    this.differences = into?.differences ?? new Map();
  }

  /** Whether all times until then were compared. */
  walk(from: number, until: number, most: number): boolean {
    const end = this.count + most;
    for (const { time, only } of mergeTimes(this.ours, this.theirs, from)) {
      if (time > until) return true;
      this.count++;
      if (only) this.differences.set(time, only);
      if (this.count >= end || this.differences.size >= MOST_DIFFERENCES) return false;
    }
    return true;
  }
}

function ourTimes(schedule: Schedule, seed: string): NextTime {
  const compiled = compileSchedule(schedule, seed);
  return (after) => compiled.next(after) ?? Number.POSITIVE_INFINITY;
}

/** Each time from the one before, as those systems do it. */
function theirTimes(rule: TheirTimes): NextTime {
  const { first = Number.NEGATIVE_INFINITY, end = Number.POSITIVE_INFINITY } = rule;
  const next = withoutDays(rule.library === "interval" ? intervalTimes(rule) : cronTimes(rule), rule);
  const slot = "slot" in rule ? rule.slot : undefined;
  return (after) => {
    if (after < first) return first;
    let time = next(after);
    // Only the first time of a slot counts.
    for (let begin = 0; slot !== undefined && Number.isFinite(time); time = next(begin + slot - 1)) {
      begin = Math.floor(time / slot) * slot;
      const only = next(begin - 1);
      if (only > after) return only;
    }
    // BullMQ checks the end of an interval before it adds the next time.
    const last = "overruns" in rule && end >= rule.next ? end + rule.every - 1 : end;
    return time > last ? Number.POSITIVE_INFINITY : time;
  };
}

/** Passes over skipped days, each to its end in the rule's zone. */
function withoutDays(next: NextTime, { skipped = [], timezone = "UTC" }: TheirTimes): NextTime {
  if (skipped.length === 0) return next;
  const midnights = compileSchedule({ cron: "0 0 * * *", timezone });
  const weekday = (time: number) => new Date(localIso(time, timezone).slice(0, 10)).getUTCDay();
  return (after) => {
    let time = next(after);
    while (Number.isFinite(time) && skipped.includes(weekday(time))) time = next(midnights.next(time)! - 1);
    return time;
  };
}

function intervalTimes({ every, next }: Extract<TheirTimes, { every: number }>): NextTime {
  return (after) => next + Math.max(0, Math.floor((after - next) / every) + 1) * every;
}

function cronTimes({
  library,
  cron,
  timezone: tz,
  start = 0,
}: Extract<TheirTimes, { cron: string }>): NextTime {
  const parse =
    library === "cron-parser 4"
      ? cronParser4.parseExpression
      : CronExpressionParser.parse.bind(CronExpressionParser);
  return (after) => {
    try {
      return parse(cron, { tz, currentDate: new Date(Math.max(after, start)) })
        .next()
        .getTime();
    } catch {
      return Number.POSITIVE_INFINITY;
    }
  };
}

/** From noon to noon, where that is not 24 hours. */
function clockChanges(timezone: string, from: number, until: number): [from: number, to: number][] {
  const noons = compileSchedule({ cron: "0 12 * * *", timezone });
  const found: [number, number][] = [];
  for (let noon = noons.next(from)!; noon < until; ) {
    const next = noons.next(noon)!;
    if (next - noon !== DAY) found.push([noon, next]);
    noon = next;
  }
  return found;
}

function reasonOf(rule: TheirTimes, time: number): string {
  if (rule.first !== undefined && time <= rule.first)
    return `its next time there is ${utcIso(rule.first)}, whatever its rule says`;
  if ("slot" in rule) return "pg-boss fires once a minute at most";
  if (rule.library === "interval")
    return rule.overruns
      ? "BullMQ fires an interval once more after its endDate"
      : "the interval begins elsewhere";
  if (
    clockChanges(rule.timezone, time - 2 * DAY, time + 2 * DAY).some(
      ([from, to]) => time >= from && time <= to,
    )
  )
    return `clocks change in ${rule.timezone} then`;
  if (rule.library === "cron-parser 4" && rule.cron.includes("#"))
    return "cron-parser 4 wants both the day of the month and the weekday with #; here either is enough";
  return `${rule.library} has other rules`;
}
