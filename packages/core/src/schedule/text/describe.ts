import { formatInstant } from "../../words/times.js";
import { boundsOf, UNBOUNDED } from "../bounds.js";
import { within } from "../error-path.js";
import { exclusionKindOf } from "../exclude/read.js";
import { formatJitter } from "../jitter.js";
import { kindOf } from "../kinds/index.js";
import type {
  DelaySchedule,
  Limited,
  ManualSchedule,
  Schedule,
  ScheduleExclusion,
  SimpleSchedule,
  WholeSchedule,
} from "../types.js";

/**
 * A schedule as one English sentence without a full stop: `at 09:00, Monday to Friday (Europe/Paris)`.
 * Made from the sets of values, so that every spelling of a schedule reads the same. Members of a union are joined
 * with `or`; limits follow.
 * @param seed the task's, from `seedOf`, to resolve `H`
 * @throws as `compileSchedule`
 */
export function describeSchedule(schedule: Schedule, seed = ""): string {
  if (!("any" in schedule)) return simple(schedule, "schedule", seed);
  const members = schedule.any.map((member, i) => simple(member, `schedule.any[${i}]`, seed));
  return members.join("; or ") + limits(schedule, "schedule", seed, ";");
}

function simple(
  schedule: SimpleSchedule | DelaySchedule | ManualSchedule,
  path: string,
  seed: string,
): string {
  const text = within(path, () => kindOf(schedule).describe(schedule, seed, "alone"));
  return text + limits(schedule, path, seed, ",");
}

function limits(limited: Limited & WholeSchedule, path: string, seed: string, mark: string): string {
  const { start, end } = boundsOf(limited, path);
  const except = (limited.except ?? []).map((spec, i) =>
    within(`${path}.except[${i}]`, () => exclusionText(spec, seed)),
  );
  return (
    (start === UNBOUNDED.start ? "" : `${mark} from ${formatInstant(start)} on`) +
    (end === UNBOUNDED.end ? "" : `${mark} until ${formatInstant(end)}`) +
    wholeText(limited, mark) +
    (except.length === 0 ? "" : `${mark} except ${except.join("; ")}`)
  );
}

function wholeText({ jitter, maxRuns }: WholeSchedule, mark: string): string {
  const late = jitter === undefined ? "" : formatJitter(jitter);
  const times = maxRuns === 1 ? "once" : `${maxRuns} times`;
  return (
    (late === "" ? "" : `${mark} up to ${late}${late.endsWith("%") ? " of the gap" : ""} later`) +
    (maxRuns === undefined ? "" : `${mark} ${times} at most`)
  );
}

function exclusionText(spec: ScheduleExclusion, seed: string): string {
  const bounds = limits({ start: spec.start, end: spec.end }, "schedule", seed, ",");
  return exclusionKindOf(spec).describe(spec, seed, "exclusion") + bounds;
}
