import { boundsOf, UNBOUNDED } from "../bounds.js";
import { within } from "../error-path.js";
import { kindOf, TIMED_KINDS } from "../kinds/index.js";
import type { ExclusionKind } from "../kinds/kind.js";
import type { Timetable } from "../timetable.js";
import type { ScheduleExclusion } from "../types.js";
import { BoundedExcluder } from "./excluder.js";
import type { NamedExcluder } from "./excluding-schedule.js";
import type { Surroundings } from "./exclusion.js";
import { isNamed, named } from "./named.js";

export const EXCLUSION_KINDS: readonly ExclusionKind[] = [...TIMED_KINDS, named];

export function exclusionKindOf(spec: ScheduleExclusion): ExclusionKind {
  return isNamed(spec) ? named : kindOf(spec);
}

/**
 * Reads exclusions once, for all members of a union.
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`
 */
export function readExclusions(
  specs: readonly ScheduleExclusion[],
  around: Surroundings,
  path: string,
): (target: Timetable) => NamedExcluder[] {
  const all = specs.map((spec, i) =>
    within(`${path}.except[${i}]`, () => {
      const kind = exclusionKindOf(spec);
      return { label: kind.label(spec), bounds: boundsOf(spec), exclusion: kind.exclude(spec, around) };
    }),
  );
  return (target) =>
    all.flatMap(({ label, bounds, exclusion }) =>
      exclusion.on(target).map((excluder) => ({
        excluder: bounds === UNBOUNDED ? excluder : new BoundedExcluder(excluder, bounds),
        label,
      })),
    );
}
