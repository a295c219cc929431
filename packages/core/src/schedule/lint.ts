import { formatInstant } from "../words/times.js";
import { bounded, boundsOf } from "./bounds.js";
import { exclusionsOf, isNever, type Member, membersOf } from "./compile.js";
import { type ExcludingSchedule, GAVE_UP } from "./exclude/excluding-schedule.js";
import type { Exclusion } from "./exclude/exclusion.js";
import { exclusionKindOf } from "./exclude/read.js";
import { delayOf } from "./interval/delay.js";
import { parseJitter } from "./jitter.js";
import { kindOf } from "./kinds/index.js";
import type { Warn } from "./kinds/kind.js";
import type { CompiledSchedule, Limited, Schedule, ScheduleContext, ScheduleExclusion } from "./types.js";
import { zoneDoubt } from "./zone/names.js";

export interface ScheduleWarning {
  /**
   * Stable, for programs: `NEVER_FIRES`, `EACH_SECOND`, `EACH_MINUTE_OF_HOUR`, `STEP_ONE_VALUE`, `STEP_UNEVEN`, `QUARTZ_WEEKDAYS`,
   * `ZONE_ABBREVIATION`, `CLOCK_SKIPS`, `DAY_UNION`, `DIALECT_DIFFERS`, `SYSTEMD_DIFFERS`, `ZONE_IGNORED`,
   * `DST_IGNORED`, `DAY_MISSING`, `EXCLUDES_NOTHING`, `EXCLUDES_MOMENTS`, `EXCLUDES_TOO_MANY`, `JITTER_CUT`, `JITTER_IGNORED`.
   */
  readonly code: string;
  readonly message: string;
  /** Remedy, as one sentence. */
  readonly remedy: string;
}

/** Remedy for a schedule that never fires. */
const CHECK = "Check its dates, its start and end, and its exclusions.";
const EVER = Number.NEGATIVE_INFINITY;
/** Searches tried for each member; each may have the highest cost of a search. */
const MAX_TRIES = 4;
/** Earliest start of these searches: earlier times do not matter to tasks of today. */
const SAMPLE = Date.UTC(2026, 0, 1);

/** Warnings about a schedule, and whether it never fires. */
export interface ScheduleReview {
  /** Reason why it has no time at all, past times included; undefined if it has one. */
  readonly never: string | undefined;
  readonly warnings: ScheduleWarning[];
}

/**
 * Warns about a schedule that is valid but probably not intended. Warnings about a member of a union begin with its
 * place, `any[2]: …`.
 * @throws as `compileSchedule`, except for calendars that the context does not have
 */
export function lintSchedule(schedule: Schedule, context: ScheduleContext = {}): ScheduleWarning[] {
  return reviewSchedule(schedule, context).warnings;
}

/** Does the same as `lintSchedule`, and finds whether the schedule ever fires. Calendars that the context does not have count as empty. */
export function reviewSchedule(schedule: Schedule, context: ScheduleContext = {}): ScheduleReview {
  // It is meant to have no times.
  if ("manual" in schedule) return { never: undefined, warnings: [] };
  const warnings: ScheduleWarning[] = [];
  const warn: Warn = (code, message, remedy) => warnings.push({ code, message, remedy });
  const members = membersOf(schedule, { seed: "", context, lenient: true });
  const exclusions = exclusionsOf(schedule);
  const dead = members.map((member) => isNever(member, exclusions));
  const never = dead.includes(false) ? undefined : whyNever(members);
  if (never !== undefined) warn("NEVER_FIRES", `This schedule never fires: ${never}`, CHECK);
  if ("any" in schedule) {
    for (const [i, member] of schedule.any.entries()) {
      const warnMember: Warn = (code, message, remedy) => warn(code, `any[${i}]: ${message}`, remedy);
      if (dead[i]) warnMember("NEVER_FIRES", `It never fires: ${whyNever([members[i]!])}`, CHECK);
      kindOf(member).lint(member, warnMember);
      lintExclusions(member, [members[i]!], warnMember);
    }
  } else if (delayOf(schedule) === undefined) {
    kindOf(schedule).lint(schedule, warn);
  }
  lintExclusions(schedule, members, warn);
  lintZones(schedule, members, warn);
  lintJitter(schedule, members, warn);
  if (!("any" in schedule) && delayOf(schedule) !== undefined) lintMoments(schedule, warn);
  if (never === undefined) lintSearches(schedule, members, warn);
  return { never, warnings };
}

/** Warns about a jitter that is longer than the gap between two times, of which the first ones of a sample stand for all. */
function lintJitter({ jitter }: Schedule, [member, ...others]: readonly Member[], warn: Warn): void {
  const read = jitter === undefined ? { part: 0 } : parseJitter(jitter);
  if (!member || others.length > 0 || !("ms" in read)) return;
  const first = member.before.next(SAMPLE);
  const second = first === undefined ? undefined : member.before.next(first);
  if (first === undefined || second === undefined || read.ms <= second - first) return;
  const message = "The jitter is longer than the interval: it ends before the following time.";
  warn("JITTER_CUT", message, "Give a jitter no longer than the interval.");
}

/** Warns about zones that are valid but probably not intended. */
function lintZones(schedule: Schedule, members: readonly Member[], warn: Warn): void {
  const given = exclusionsOf(schedule).map((spec) => ("timezone" in spec ? spec.timezone : undefined));
  const zones = new Set([...members.map(({ timetable }) => timetable.zone), ...given]);
  for (const zone of zones) {
    const [what, remedy] = (zone !== undefined && zoneDoubt(zone)) || [];
    if (what !== undefined) warn("ZONE_ABBREVIATION", what, remedy!);
  }
}

function whyNever(members: readonly Member[]): string {
  const some = (times: (member: Member) => CompiledSchedule) =>
    members.some((member) => times(member).next(Number.NEGATIVE_INFINITY) !== undefined);
  if (some(({ before }) => before)) {
    const long = members.find(({ excluding }) => excluding?.search(EVER) === GAVE_UP)?.excluding;
    if (long === undefined) return "its exclusions take every time.";
    return `its exclusions take each of the ${countOf(long)} times that one search passes over.`;
  }
  if (some(({ timetable }) => timetable.compiled)) return "no time lies between its start and its end.";
  return "no such date ever exists.";
}

function countOf({ limit }: ExcludingSchedule): string {
  return limit.toLocaleString("en");
}

/** @param members the schedules from which the exclusions remove times */
function lintExclusions({ except = [] }: Limited, members: readonly Member[], warn: Warn): void {
  for (const [i, spec] of except.entries()) {
    const { times } = read(spec);
    if (!times || members.some((member) => firstOf(times, spec, member, EVER) !== undefined)) continue;
    const message = `except[${i}]: No date matches: it takes nothing away.`;
    warn("EXCLUDES_NOTHING", message, "Correct its date, or leave it out.");
  }
}

/** The first time after `after` that an exclusion names, whether its schedule has it or not. */
function firstOf(
  times: NonNullable<Exclusion["times"]>,
  spec: ScheduleExclusion,
  { timetable }: Member,
  after: number,
): number | undefined {
  return bounded(times(timetable.zone), boundsOf(spec)).next(after);
}

function read(spec: ScheduleExclusion): Exclusion {
  return exclusionKindOf(spec).exclude(spec, { seed: "", context: {}, lenient: true });
}

/**
 * Tries searches from the starts of exclusions of single times. A search is bounded: if they remove too many
 * consecutive times, it finds nothing.
 */
function lintSearches(schedule: Schedule, members: readonly Member[], warn: Warn): void {
  for (const [i, member] of members.entries()) {
    const { excluding } = member;
    if (excluding === undefined) continue;
    const members = "any" in schedule ? [schedule, schedule.any[i]!] : [schedule];
    const first = members
      .flatMap(({ except = [] }) => except)
      .map((spec) => {
        const { times, wholeDays } = read(spec);
        if (wholeDays) return undefined;
        return times ? firstOf(times, spec, member, SAMPLE) : SAMPLE;
      });
    const tries = [...new Set(first)].filter((time) => time !== undefined).slice(0, MAX_TRIES);
    const from = tries.find((time) => excluding.search(time - 1) === GAVE_UP);
    if (from === undefined) continue;
    const message = `Its exclusions take more times in a row than one search passes over (${countOf(excluding)}), for example from ${formatInstant(from)} on: what follows them is not found.`;
    warn("EXCLUDES_TOO_MANY", message, "Exclude whole days or hours instead.");
    return;
  }
}

/** Warns about exclusions of single times from a delay: a run ends at any millisecond, so they hardly ever match. */
function lintMoments({ except = [] }: Limited, warn: Warn): void {
  for (const [i, spec] of except.entries()) {
    const { times, wholeDays } = read(spec);
    if (!times || wholeDays) continue;
    const message = `except[${i}]: It takes single times, which a delay after a run hardly ever meets.`;
    warn("EXCLUDES_MOMENTS", message, "Exclude whole days instead.");
  }
}
