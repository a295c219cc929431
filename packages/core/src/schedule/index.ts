export { canonicalSchedule, compileSchedule, neverFires } from "./compile.js";
export { describeSchedule } from "./describe.js";
export { formatDuration, MAX_DURATION, parseDuration } from "./duration.js";
export { lintSchedule, type ScheduleWarning } from "./lint.js";
export { MAX_EXPRESSION_LENGTH, scheduleSchema } from "./schema.js";
export type {
  AtSchedule,
  CalendarSchedule,
  CompiledSchedule,
  CronSchedule,
  EverySchedule,
  Schedule,
} from "./types.js";
