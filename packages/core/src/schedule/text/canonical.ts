import { formatInstant } from "../../words/times.js";
import { boundsOf, UNBOUNDED } from "../bounds.js";
import { within } from "../error-path.js";
import { exclusionKindOf } from "../exclude/read.js";
import { formatJitter } from "../jitter.js";
import { kindOf } from "../kinds/index.js";
import type { Limited, Schedule, ScheduleExclusion, WholeSchedule } from "../types.js";

/**
 * The text that all spellings of a schedule share: systemd's normalised form for calendar events (without
 * the schedule's own `timezone`), numbers for names in cron, whole units for durations, UTC for times.
 * For cron and calendar without anything else it is again an expression with the same meaning. Limits follow
 * as words; members of a union and exclusions are sorted, each with its zone.
 * @param seed the task's, from `seedOf`, to resolve `H`
 * @throws as `compileSchedule`
 */
export function canonicalSchedule(schedule: Schedule, seed = ""): string {
  if (!("any" in schedule)) {
    return (
      kindOf(schedule).canonical(schedule, seed, "alone") +
      limits(schedule, "schedule", seed) +
      wholeText(schedule)
    );
  }
  const members = schedule.any.map((member, i) => {
    const path = `schedule.any[${i}]`;
    const text = within(path, () => kindOf(member).canonical(member, seed, "member"));
    return text + limits(member, path, seed);
  });
  return `any of (${sorted(members)})${limits(schedule, "schedule", seed)}${wholeText(schedule)}`;
}

function wholeText({ jitter, maxRuns }: WholeSchedule): string {
  const late = jitter === undefined ? "" : ` jitter ${formatJitter(jitter)}`;
  return late + (maxRuns === undefined ? "" : ` maxRuns ${maxRuns}`);
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
  const { start, end } = spec;
  return exclusionKindOf(spec).canonical(spec, seed, "exclusion") + limits({ start, end }, "schedule", seed);
}

function sorted(texts: readonly string[]): string {
  return [...new Set(texts)].sort().join("; ");
}
