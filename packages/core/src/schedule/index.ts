export { canonicalSchedule } from "./canonical.js";
export { calendarsOf, compileSchedule, neverFires, usesSeed } from "./compile.js";
export { describeSchedule } from "./describe.js";
export { formatDuration, MAX_DURATION, parseDuration } from "./duration.js";
export { parseInstant } from "./instant.js";
export { jitterOf } from "./jitter.js";
export { lintSchedule, type ScheduleWarning } from "./lint.js";
export { checkCalendar, MAX_CALENDAR_ENTRIES } from "./named.js";
export { calendarZone, MAX_EXPRESSION_LENGTH } from "./plan.js";
export {
  type ExcludedTime,
  type PreviewInstant,
  type PreviewNote,
  type PreviewOptions,
  type PreviewTime,
  previewSchedule,
  type SchedulePreview,
} from "./preview.js";
export { scheduleSchema } from "./schema.js";
export type {
  AtSchedule,
  CalendarSchedule,
  CompiledSchedule,
  CronSchedule,
  DelaySchedule,
  DstChoice,
  EverySchedule,
  Limited,
  Schedule,
  ScheduleBounds,
  ScheduleContext,
  ScheduleExclusion,
  SimpleSchedule,
  UnionSchedule,
  WholeSchedule,
} from "./types.js";
export { delayOf, dueOf, maxRunsOf } from "./whole.js";
