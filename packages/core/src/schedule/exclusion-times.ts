import { ALL_SIXTY } from "./bits.js";
import { bounded, boundsOf } from "./bounds.js";
import type { DstRule } from "./dst.js";
import { FieldSchedule } from "./engine.js";
import { ownZone } from "./exclusions.js";
import { timeless } from "./fields.js";
import { parseInstant } from "./instant.js";
import { intervalSchedule } from "./plain.js";
import { intervalOf, planOf } from "./plan.js";
import { AtOnce } from "./simple.js";
import type { CompiledSchedule, ScheduleExclusion } from "./types.js";
import { zoneOf } from "./zone.js";

const ALL_DAY = { hours: 0xff_ffff, minutes: ALL_SIXTY, seconds: ALL_SIXTY };

type Unnamed = Exclude<ScheduleExclusion, { named: string }>;

/** Both passes are taken away, and so are skipped times: a schedule may run these late. */
const ALL_TIMES: DstRule = { gap: Number.POSITIVE_INFINITY, overlap: "both" };

/**
 * Whether an exclusion names any time at all.
 * @param zone that of the schedule from which it is taken
 */
export function namesTimes(spec: Unnamed, zone: string): boolean {
  return bounded(timesOf(spec, zone), boundsOf(spec)).next(Number.NEGATIVE_INFINITY) !== undefined;
}

function timesOf(spec: Unnamed, zone: string): CompiledSchedule {
  if ("at" in spec) return new AtOnce(parseInstant(spec.at, "schedule.at"));
  if ("every" in spec) {
    const plan = intervalOf(spec);
    return intervalSchedule(spec.timezone === undefined ? { ...plan, zone } : plan);
  }
  const plan = planOf(spec)!;
  const clock = ownZone(plan, spec.timezone) ?? zone;
  // Days without times of day are whole days.
  const fields = { ...timeless(plan.fields), ...(plan.event?.daysOnly ? ALL_DAY : {}) };
  return new FieldSchedule(fields, zoneOf(clock), ALL_TIMES);
}
