/**
 * Schedules without Redis: check, describe and compute their times.
 *
 * @packageDocumentation
 */
export {
  canonicalSchedule,
  compileSchedule,
  type Display,
  type Duration,
  describeSchedule,
  displayText,
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
