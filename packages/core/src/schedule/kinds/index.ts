import type { z } from "zod";
import { CarillonError } from "../../errors.js";
import { list } from "../text/english.js";
import type { Schedule, ScheduleKind } from "../types.js";
import { at } from "./at.js";
import { calendar } from "./calendar.js";
import { cron } from "./cron.js";
import { every } from "./every.js";
import type { Kind } from "./kind.js";
import { manual } from "./manual.js";

/** The kinds of schedules, by their own field. A new kind is a file in this folder, an entry here, and its types. */
const BY_KEY = { cron, calendar, every, at, manual } satisfies Record<Key, Kind>;

type Key = Exclude<ScheduleKind, "any">;

export const KINDS: readonly Kind[] = Object.values(BY_KEY);
/** Those that have times: members of unions, and exclusions. */
export const TIMED_KINDS: readonly Kind[] = KINDS.filter((kind) => kind !== manual);

/** Shapes of the kinds' own fields. */
export const KIND_SHAPES = Object.fromEntries(KINDS.map(({ key, shape }) => [key, shape.optional()])) as {
  readonly [K in Key]: z.ZodOptional<(typeof BY_KEY)[K]["shape"]>;
};

/** The kind of a schedule that is not a union. @throws `INVALID_SCHEDULE` */
export function kindOf(schedule: object): Kind {
  const kind = KINDS.find(({ key }) => key in schedule);
  if (kind) return kind;
  const what = `A schedule needs one of ${list(
    KINDS.map(({ key }) => key),
    "or",
  )}, or any with a list of these.`;
  throw new CarillonError("INVALID_SCHEDULE", what, { field: "schedule" });
}

/** The field that says what kind a schedule is: `cron`, `calendar`, `every`, `at`, `manual`, or `any` for a union. */
export function scheduleKind(schedule: Schedule): ScheduleKind {
  return "any" in schedule ? "any" : (kindOf(schedule).key as Key);
}
