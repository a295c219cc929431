/**
 * Schedules without Redis: check, describe and compute their times.
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
export { previewSchedule } from "./preview-schedule.js";
