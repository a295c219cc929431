export { canonicalSchedule, compileSchedule, MAX_EXPRESSION_LENGTH, neverFires } from "./compile.js";
export { describeSchedule } from "./describe.js";
export { formatDuration, MAX_DURATION, parseDuration } from "./duration.js";
export { lintSchedule, type ScheduleWarning } from "./lint.js";
export { scheduleSchema } from "./schema.js";
export type {
  AtSchedule,
  CalendarSchedule,
  CompiledSchedule,
  CronSchedule,
  EverySchedule,
  Schedule,
} from "./types.js";
