import type { z } from "zod";
import { CarillonError, quote } from "../../errors.js";
import { nearestRemedy } from "../../nearest.js";
import { lintFields } from "../cron/lint.js";
import { parseCron, withoutEnds } from "../cron/parse.js";
import { membersOf } from "../fields/bits.js";
import type { CronSchedule, DstChoice } from "../types.js";
import { requireZone } from "../zone/names.js";
import { assertLength, differenceAtChange, type Expression, expressionKind } from "./expression.js";
import type { Kind, Warn } from "./kind.js";

/** Longer texts are left unchanged, because they are refused for their length. */
const MAX_SQUEEZED = 2_048;

export const cron: Kind<CronSchedule, z.ZodString> = expressionKind<CronSchedule>({
  key: "cron",
  takes: ["timezone", "dst", "dialect"],
  example: "0 9 * * 1-5",
  stored: (expression) => ({ cron: squeeze(expression) }),
  label: (spec) => spec.cron,
  usesSeed: (spec) => /h/i.test(String(spec.cron)),
  read({ cron: expression, timezone, dialect, dst }, seed) {
    assertLength(expression, "schedule.cron");
    checkDialect(dialect, dst);
    const { fields, rule, canonical } = parseCron(expression, seed, dialect);
    return { fields, rule, canonical, zone: requireZone(timezone ?? "UTC", "schedule.timezone") };
  },
  lint: lintCron,
});

/** @throws `INVALID_SCHEDULE` */
function checkDialect(dialect: string | undefined, dst: DstChoice | undefined): void {
  if (dialect === undefined) return;
  if (dialect !== "cron-parser") {
    const remedy = `${nearestRemedy(dialect, ["cron-parser"])} Leave it out for the usual rules.`;
    throw new CarillonError("INVALID_SCHEDULE", `${quote(dialect)} is not a dialect of cron.`, {
      field: "schedule.dialect",
      remedy,
    });
  }
  if (dst === undefined) return;
  throw new CarillonError("INVALID_SCHEDULE", "Dialect cron-parser has its own rule for clock changes.", {
    field: "schedule.dst",
    remedy: "Leave out dst or dialect.",
  });
}

/** Leaves one space between fields. */
function squeeze(expression: string): string {
  if (expression.length > MAX_SQUEEZED) return expression;
  const fields = withoutEnds(expression).split(/[ \t]+/);
  return fields.filter((field) => field !== "").join(" ");
}

function lintCron(schedule: CronSchedule, expression: Expression, warn: Warn): void {
  const { days, hours } = expression.fields;
  if (days.either) {
    const message = "Day of month and day of week are both given: cron fires when either matches.";
    warn("DAY_UNION", message, "For both at once, use a calendar schedule, such as Fri *-*-13.");
  }
  const fields = schedule.cron.trim().split(/[ \t]+/);
  const [minute, hour] = fields.length === 6 ? fields.slice(1) : fields;
  if (minute === "*" && hour !== undefined && membersOf(hours).length === 1) {
    const message = `It fires at each minute of hour ${hour}.`;
    warn("EACH_MINUTE_OF_HOUR", message, "For once a day, write 0 for the minute.");
  }
  lintFields(squeeze(schedule.cron), warn);
  if (schedule.dialect === undefined) lintDialect(schedule, expression, warn);
}

/** Warns if cron-parser, and so BullMQ, would fire at other times. */
function lintDialect(schedule: CronSchedule, expression: Expression, warn: Warn): void {
  let theirs: ReturnType<typeof parseCron>;
  try {
    theirs = parseCron(schedule.cron, "", "cron-parser");
  } catch {
    return;
  }
  const remedy = 'For the times of cron-parser, add dialect: "cron-parser".';
  if (theirs.either !== expression.fields.days.either) {
    const message =
      "A day has to match both day of month and day of week, since one begins with *; for cron-parser, which BullMQ uses, either is enough.";
    warn("DIALECT_DIFFERS", message, remedy);
  } else if (schedule.dst === undefined) {
    const message = differenceAtChange(expression, theirs.rule, "cron-parser, which BullMQ uses");
    if (message) warn("DIALECT_DIFFERS", message, remedy);
  }
}
