import { CarillonError } from "../errors.js";
import { CalendarInterval } from "./calendar-interval.js";
import { patternOfFields, patternOfInterval, type TimePattern } from "./day-minutes.js";
import { dstRule } from "./dst.js";
import { FieldSchedule } from "./engine.js";
import { parseInstant } from "./instant.js";
import { type IntervalPlan, intervalOf, planOf } from "./plan.js";
import { AtOnce, EveryInterval } from "./simple.js";
import type { CompiledSchedule, DstChoice } from "./types.js";
import { zoneOf } from "./zone.js";

/** A schedule of one syntax without its limits, and what exclusions and previews ask of it. */
export interface Plain {
  readonly compiled: CompiledSchedule;
  readonly zone: string;
  /** See `FieldSchedule.wallOf`; undefined: the plain wall clock. */
  readonly wallOf?: (occurrence: number) => number;
  /** Undefined: any. */
  readonly pattern: () => TimePattern | undefined;
  /** Whether it runs times late that a gap skipped. */
  readonly late: boolean;
}

/**
 * @param asSet for unions and exclusions, see `dstRule`
 * @throws `INVALID_SCHEDULE`, `INVALID_TIMEZONE`, `INVALID_DURATION`
 */
export function plainSchedule(schedule: object, seed = "", asSet = false): Plain {
  const plan = planOf(schedule, seed);
  if (plan) {
    const zone = zoneOf(plan.zone);
    const rule = dstRule(plan.rule, (schedule as { dst?: DstChoice }).dst, asSet);
    const compiled = new FieldSchedule(plan.fields, zone, rule);
    return {
      compiled,
      zone: plan.zone,
      wallOf: (occurrence) => compiled.wallOf(occurrence),
      pattern: lazy(() => patternOfFields(plan.fields)),
      late: zone !== undefined && rule.gap > 0,
    };
  }
  if ("every" in schedule) {
    const plan = intervalOf(schedule as { every: string });
    const { zone } = plan;
    const compiled = intervalSchedule(plan);
    const late = compiled instanceof CalendarInterval && zoneOf(zone) !== undefined;
    return { compiled, zone, pattern: lazy(() => patternOfInterval(compiled)), late };
  }
  if ("at" in schedule) {
    const { at } = schedule as { at: string | number };
    return {
      compiled: new AtOnce(parseInstant(at, "schedule.at")),
      zone: "UTC",
      pattern: () => undefined,
      late: false,
    };
  }
  const what = "A schedule needs one of cron, calendar, every or at, or any with a list of these.";
  throw new CarillonError("INVALID_SCHEDULE", what, { field: "schedule" });
}

/** Counted by the clock of a zone, or by elapsed time alone. */
export function intervalSchedule({
  interval,
  origin,
  zone,
}: Omit<IntervalPlan, "canonical">): EveryInterval | CalendarInterval {
  if (typeof interval === "number") return new EveryInterval(interval, origin ?? 0);
  return new CalendarInterval(interval, origin, zoneOf(zone));
}

/** Made when it is first asked for. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly it: T } | undefined;
  return () => {
    made ??= { it: make() };
    return made.it;
  };
}
