import { HALF, membersOf } from "./bits.js";
import { type FieldPlan, neverFires, planOf } from "./compile.js";
import { restrictsWeekday } from "./days.js";
import { parseDuration } from "./duration.js";
import type { Schedule } from "./types.js";

export interface ScheduleWarning {
  /** Stable, for programs: `NEVER_FIRES`, `EACH_SECOND`, `EACH_MINUTE_OF_HOUR`, `DAY_UNION`, `ZONE_IGNORED`. */
  readonly code: string;
  readonly message: string;
}

/**
 * What is valid but probably not meant.
 * @throws as `compileSchedule`
 */
export function lintSchedule(schedule: Schedule): ScheduleWarning[] {
  const warnings: ScheduleWarning[] = [];
  const warn = (code: string, message: string) => warnings.push({ code, message });
  if (neverFires(schedule)) warn("NEVER_FIRES", "No date matches: this schedule never fires.");
  const plan = planOf(schedule);
  if (plan && (plan.fields.subSeconds || (plan.fields.seconds.lo & plan.fields.seconds.hi) === HALF)) {
    warn("EACH_SECOND", "It fires each second or more often while it matches; did you mean each minute?");
  }
  if ("every" in schedule && parseDuration(schedule.every) <= 1_000) {
    warn("EACH_SECOND", "It fires each second or more often.");
  }
  if ("cron" in schedule && plan) lintCron(schedule.cron, plan, warn);
  if ("calendar" in schedule && plan && schedule.timezone !== undefined && plan.zone !== schedule.timezone) {
    warn("ZONE_IGNORED", `The expression's own zone ${plan.zone} counts, not timezone ${schedule.timezone}.`);
  }
  return warnings;
}

function lintCron(cron: string, plan: FieldPlan, warn: (code: string, message: string) => void): void {
  if (plan.fields.days.either && restrictsWeekday(plan.fields.days)) {
    const message =
      "Day of month and day of week are both given: cron fires when either matches. For both at once use a calendar schedule, such as Fri *-*-13.";
    warn("DAY_UNION", message);
  }
  const fields = cron.trim().split(/[ \t]+/);
  const [minute, hour] = fields.length === 6 ? fields.slice(1) : fields;
  if (minute === "*" && hour !== undefined && membersOf(plan.fields.hours).length === 1) {
    warn(
      "EACH_MINUTE_OF_HOUR",
      `It fires at each minute of hour ${hour}; for once a day write 0 for the minute.`,
    );
  }
}
