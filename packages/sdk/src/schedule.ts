/**
 * Schedules without Redis: check, describe, compute and compare their times.
 *
 * @packageDocumentation
 */
export {
  canonicalSchedule,
  compileSchedule,
  type Duration,
  describeSchedule,
  lintSchedule,
  parseDuration,
  parseInstant,
  parseTask,
  type Schedule,
  type ScheduleInput,
  type ScheduleKind,
  scheduleKind,
  scheduleSchema,
  seedOf,
  type TaskInput,
  taskSchema,
} from "@carillon/core";
export {
  type CompareCronOptions,
  type CronComparison,
  type CronDifference,
  type CronSide,
  compareCron,
} from "./compare-cron.js";
export { previewSchedule } from "./preview-schedule.js";
