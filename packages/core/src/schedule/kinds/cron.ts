import type { z } from "zod";
import { parseCron } from "../cron/parse.js";
import { membersOf } from "../fields/bits.js";
import type { CronSchedule } from "../types.js";
import { requireZone } from "../zone/names.js";
import { assertLength, expressionKind, type Plan } from "./expression.js";
import type { Kind, Warn } from "./kind.js";

/** Longer texts are left unchanged, because they are refused for their length. */
const MAX_SQUEEZED = 2_048;

export const cron: Kind<CronSchedule, z.ZodString> = expressionKind<CronSchedule>({
  key: "cron",
  example: "0 9 * * 1-5",
  stored: (expression) => ({ cron: squeeze(expression) }),
  label: (spec) => spec.cron,
  usesSeed: (spec) => /h/i.test(String(spec.cron)),
  read({ cron: expression, timezone }, seed) {
    assertLength(expression, "schedule.cron");
    const { fields, rule, canonical } = parseCron(expression, seed);
    return { fields, rule, canonical, zone: requireZone(timezone ?? "UTC", "schedule.timezone") };
  },
  lint: lintCron,
});

/** Leaves one space between fields. */
function squeeze(expression: string): string {
  if (expression.length > MAX_SQUEEZED) return expression;
  const fields = expression.split(/[ \t]+/);
  return fields.filter((field) => field !== "").join(" ");
}

function lintCron(schedule: CronSchedule, { fields: { days, hours } }: Plan, warn: Warn): void {
  if (days.either) {
    const message =
      "Day of month and day of week are both given: cron fires when either matches. For both at once use a calendar schedule, such as Fri *-*-13.";
    warn("DAY_UNION", message);
  }
  const fields = schedule.cron.trim().split(/[ \t]+/);
  const [minute, hour] = fields.length === 6 ? fields.slice(1) : fields;
  if (minute === "*" && hour !== undefined && membersOf(hours).length === 1) {
    const message = `It fires at each minute of hour ${hour}; for once a day write 0 for the minute.`;
    warn("EACH_MINUTE_OF_HOUR", message);
  }
}
