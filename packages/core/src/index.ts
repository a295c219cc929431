// The public API. internal.ts has everything else, for our own packages.

export type { AlertDestination, Silence, SilenceScope } from "./alerts.js";
export { type Next, SKIP_REASONS, type SkipReason } from "./decision.js";
export type { DefaultsScope } from "./defaults.js";
export { type AlertFormat, type AlertTarget, Secret } from "./destinations/index.js";
export type { Display } from "./display.js";
export {
  CarillonError,
  type CarillonErrorOptions,
  ERROR_CODES,
  type ErrorCode,
  isCarillonError,
} from "./errors.js";
export type { Freeze, FreezeScope, Frozen } from "./freeze.js";
export type { JobData, Occurrence, Trigger, TriggerOptions } from "./job.js";
export type { Json, PayloadLimits } from "./json.js";
export {
  ALERTS_QUEUE,
  DEFAULT_NAMESPACE,
  DEFAULT_OWNER,
  nameOf,
  seedOf,
  type TaskName,
  type TaskRef,
  textOfName,
} from "./names.js";
export {
  ALERT_KINDS,
  type AlertKind,
  BACKOFFS,
  type Backoff,
  CATCH_UP_POLICIES,
  type CatchUpPolicy,
  OVERLAP_POLICIES,
  type OverlapPolicy,
  type Policies,
  type RerunPolicy,
  type RetryPolicy,
} from "./policies.js";
export type { Quota, QuotaInput, QuotaScope } from "./quota.js";
export {
  ITEM_STATES,
  type ItemState,
  OUTCOMES,
  type Outcome,
  RUN_STATES,
  type Run,
  type RunItem,
  type RunState,
} from "./run.js";
export {
  type AtInput,
  type AtSchedule,
  type BoundsInput,
  type CalendarInput,
  type CalendarSchedule,
  type CompiledSchedule,
  type CronInput,
  type CronSchedule,
  calendarZone,
  canonicalSchedule,
  compileSchedule,
  type DelayInput,
  type DelaySchedule,
  type DstChoice,
  type Duration,
  describeSchedule,
  type EveryInput,
  type EverySchedule,
  type ExcludedTime,
  type ExclusionInput,
  formatDuration,
  type LimitsInput,
  lintSchedule,
  type MemberInput,
  type NamedInput,
  type PreviewInstant,
  type PreviewNote,
  type PreviewOptions,
  type PreviewTime,
  parseDuration,
  parseInstant,
  previewSchedule,
  type Schedule,
  type ScheduleBounds,
  type ScheduleContext,
  type ScheduleExclusion,
  type ScheduleInput,
  type ScheduleKind,
  type SchedulePreview,
  type ScheduleReview,
  type ScheduleWarning,
  type SimpleSchedule,
  scheduleKind,
  scheduleSchema,
  type UnionInput,
  type UnionSchedule,
  type WholeInput,
  type WholeSchedule,
} from "./schedule/index.js";
export type { StatusCode } from "./status-reason.js";
export {
  MAX_PRIORITY,
  type ParsedTask,
  parseTask,
  TASK_STATES,
  type TaskDefinition,
  type TaskState,
  taskSchema,
} from "./task.js";
export type {
  AlertIfInput,
  AlertInput,
  CatchUpLimitsInput,
  CrashInput,
  PoliciesInput,
  QuietInput,
  RerunInput,
  RetentionInput,
  RetryInput,
  TaskInput,
} from "./task-input.js";
export { displayText } from "./words/display.js";
