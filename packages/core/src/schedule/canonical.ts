import { boundsOf, UNBOUNDED } from "./bounds.js";
import { formatDuration } from "./duration.js";
import { within } from "./fault.js";
import { formatInstant, parseInstant } from "./instant.js";
import { formatJitter } from "./jitter.js";
import { intervalOf, planOf } from "./plan.js";
import type {
  DelaySchedule,
  Limited,
  Schedule,
  ScheduleExclusion,
  SimpleSchedule,
  WholeSchedule,
} from "./types.js";
import { delayOf } from "./whole.js";
import { requireZone } from "./zone-names.js";

/**
 * The one text that all spellings of a schedule share: systemd's normalised form for calendar events (without
 * the schedule's own `timezone`), numbers for names in cron, whole units for durations, UTC for times.
 * For cron and calendar without anything else it is an expression again, with the same meaning. Limits follow it
 * in words; members of a union and exclusions are sorted, each with its zone.
 * @param seed the task's id, to resolve `H`
 * @throws as `compileSchedule`
 */
export function canonicalSchedule(schedule: Schedule, seed = ""): string {
  if (!("any" in schedule)) {
    return simpleText(schedule, seed) + limits(schedule, "schedule", seed) + wholeText(schedule);
  }
  const members = schedule.any.map((member, i) => {
    const path = `schedule.any[${i}]`;
    const text = within(path, () => zonedText(member, seed));
    return text + limits(member, path, seed);
  });
  return `any of (${sorted(members)})${limits(schedule, "schedule", seed)}${wholeText(schedule)}`;
}

function wholeText({ jitter, maxRuns }: WholeSchedule): string {
  const late = jitter === undefined ? "" : ` jitter ${formatJitter(jitter)}`;
  return late + (maxRuns === undefined ? "" : ` maxRuns ${maxRuns}`);
}

/** @param hasClock whether it is on a clock that it says, or on that of UTC; else on that of what it is taken from */
function simpleText(schedule: SimpleSchedule | DelaySchedule, seed: string, hasClock = true): string {
  const delay = delayOf(schedule);
  if (delay !== undefined) return `${formatDuration(delay)} after finish`;
  const plan = planOf(schedule, seed);
  if (plan) return plan.canonical + dstText(schedule);
  if ("every" in schedule) {
    const { interval, origin, zone, canonical } = intervalOf(schedule);
    // By the calendar it counts from the first midnight of 1970 on its clock, which is the epoch only in UTC.
    const usual = typeof interval === "number" || (hasClock && zone === "UTC") ? 0 : undefined;
    const from = origin === undefined || origin === usual ? "" : ` from ${formatInstant(origin)}`;
    return canonical + from + (typeof interval === "number" || zone === "UTC" ? "" : ` in ${zone}`);
  }
  return "at" in schedule ? formatInstant(parseInstant(schedule.at, "schedule.at")) : "";
}

/** Beside others, a cron or calendar expression needs its zone to be understood. */
function zonedText(schedule: SimpleSchedule, seed: string): string {
  const plan = planOf(schedule, seed);
  if (!plan || plan.event?.zone !== undefined || plan.zone === "UTC") return simpleText(schedule, seed);
  return `${plan.canonical} ${plan.zone}${dstText(schedule)}`;
}

function dstText(schedule: SimpleSchedule): string {
  if (!("dst" in schedule) || schedule.dst === undefined) return "";
  const { gap, overlap } = schedule.dst;
  return (gap === undefined ? "" : ` gap ${gap}`) + (overlap === undefined ? "" : ` overlap ${overlap}`);
}

function limits(limited: Limited, path: string, seed: string): string {
  const { start, end } = boundsOf(limited, path);
  const except = (limited.except ?? []).map((spec, i) =>
    within(`${path}.except[${i}]`, () => exclusionText(spec, seed)),
  );
  return (
    (start === UNBOUNDED.start ? "" : ` start ${formatInstant(start)}`) +
    (end === UNBOUNDED.end ? "" : ` end ${formatInstant(end)}`) +
    (except.length === 0 ? "" : ` except (${sorted(except)})`)
  );
}

function exclusionText(spec: ScheduleExclusion, seed: string): string {
  const { start, end, ...rest } = spec;
  const bounds = limits({ start, end }, "schedule", seed);
  if ("named" in rest) {
    const zone = rest.timezone === undefined ? "" : ` ${requireZone(rest.timezone, "schedule.timezone")}`;
    return rest.named + zone + bounds;
  }
  const plan = planOf(rest, seed);
  if (!plan) {
    // An interval of the calendar takes a zone likewise: of its own, UTC is said too.
    const hasClock = "every" in rest && rest.timezone !== undefined;
    const utc = hasClock && intervalOf(rest).zone === "UTC";
    return `${simpleText(rest as SimpleSchedule, seed, hasClock)}${utc ? " in UTC" : ""}${bounds}`;
  }
  // Whole days are told from midnight by their missing time.
  const text = plan.event?.daysOnly ? plan.canonical.replace(" 00:00:00", "") : plan.canonical;
  // Without a zone it takes that of what it is taken from, UTC included.
  const zone = plan.event?.zone === undefined && "timezone" in rest && rest.timezone ? ` ${plan.zone}` : "";
  return text + zone + bounds;
}

function sorted(texts: readonly string[]): string {
  return [...new Set(texts)].sort().join("; ");
}
