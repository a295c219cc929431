export { calendarsOf, compileLenient, compileSchedule, usesSeed } from "./compile.js";
export { checkCalendar, MAX_CALENDAR_ENTRIES } from "./exclude/named-calendar.js";
export type * from "./input.js";
export { delayOf } from "./interval/delay.js";
export { dueOf, jitterOf } from "./jitter.js";
export { calendarZone } from "./kinds/calendar.js";
export { fixedInterval } from "./kinds/every.js";
export { MAX_EXPRESSION_LENGTH } from "./kinds/expression.js";
export { scheduleKind } from "./kinds/index.js";
export { lintSchedule, reviewSchedule, type ScheduleReview, type ScheduleWarning } from "./lint.js";
export {
  type ExcludedTime,
  type PreviewInstant,
  type PreviewNote,
  type PreviewOptions,
  type PreviewTime,
  previewSchedule,
  type SchedulePreview,
} from "./preview.js";
export { scheduleZone } from "./schedule-zone.js";
export { scheduleSchema } from "./schema.js";
export { scheduleSteps } from "./size.js";
export { canonicalSchedule } from "./text/canonical.js";
export { describeSchedule } from "./text/describe.js";
export { type Duration, formatDuration, MAX_DURATION, parseDuration } from "./text/duration.js";
export { parseInstant, storedInstant } from "./text/instant.js";
export type {
  AtSchedule,
  CalendarSchedule,
  CompiledSchedule,
  CronDialect,
  CronSchedule,
  DelaySchedule,
  DstChoice,
  EverySchedule,
  Limited,
  ManualSchedule,
  Schedule,
  ScheduleBounds,
  ScheduleContext,
  ScheduleExclusion,
  ScheduleKind,
  SimpleSchedule,
  UnionSchedule,
  WholeSchedule,
} from "./types.js";
export { previewYear, type YearDay } from "./year.js";
export { segmentAt, zoneOf } from "./zone/offsets.js";
