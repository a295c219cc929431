import { z } from "zod";
import { CarillonError, quote } from "../../errors.js";
import { NAME_PATTERN } from "../../names.js";
import { type ExclusionKind, storedZone } from "../kinds/kind.js";
import type { ScheduleExclusion } from "../types.js";
import { requireZone } from "../zone/names.js";
import { namedCalendar } from "./named-calendar.js";
import { clockOf, dayExcluder, fieldExcluder } from "./on-clock.js";

export type NamedExclusion = Extract<ScheduleExclusion, { named: string }>;

/** Exclusions that name a shared calendar. */
export const named: ExclusionKind<NamedExclusion, z.ZodString> = {
  key: "named",
  takes: ["timezone"],
  counts: "reference",
  shape: z
    .string()
    .regex(NAME_PATTERN, "A calendar's name has 1 to 128 letters, digits, dots, dashes and underscores"),
  normalise: (name, fields) => ({ named: name, ...storedZone(fields) }),
  exclude({ named: name, timezone }, { context, lenient }) {
    const own = timezone === undefined ? undefined : requireZone(timezone, "schedule.timezone");
    const entries = context.calendars?.get(name);
    if (entries === undefined && !lenient) {
      throw new CarillonError("INVALID_SCHEDULE", `There is no calendar ${quote(name)}.`, {
        field: "schedule.named",
        remedy:
          "Store it first: carillon calendars put NAME FILE, or ops.calendars.put({ name, entries }) of @carillon/ops.",
      });
    }
    const calendar = namedCalendar(entries ?? [], `calendars.${name}`);
    return {
      wholeDays: false,
      on: (target) =>
        calendar.flatMap(({ zone = own, days, events }) => {
          const clock = clockOf(zone, target);
          const timed = events.map((event) => fieldExcluder(event, clock));
          return days === undefined ? timed : [dayExcluder(days, clock), ...timed];
        }),
    };
  },
  label: (spec) => spec.named,
  canonical: (spec) => {
    const { timezone } = storedZone(spec);
    return spec.named + (timezone === undefined ? "" : ` ${timezone}`);
  },
  describe: (spec) => `the calendar ${spec.named}${spec.timezone === undefined ? "" : ` (${spec.timezone})`}`,
};

export function isNamed(spec: ScheduleExclusion): spec is NamedExclusion {
  return named.key in spec;
}
