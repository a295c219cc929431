export {
  ALERT_KINDS,
  ALERTS_QUEUE,
  type AlertDestination,
  type AlertIfInput,
  type AlertInput,
  type AlertKind,
  CarillonError,
  type CatchUpLimitsInput,
  type CrashInput,
  canonicalSchedule,
  compileSchedule,
  type Duration,
  describeSchedule,
  ERROR_CODES,
  type ErrorCode,
  type Frozen,
  ITEM_STATES,
  type ItemState,
  isCarillonError,
  type JobData,
  type Json,
  lintSchedule,
  type Occurrence,
  OUTCOMES,
  type Outcome,
  type PoliciesInput,
  parseDuration,
  parseInstant,
  previewSchedule,
  type QuietInput,
  type RerunInput,
  type RetentionInput,
  type RetryInput,
  type Run,
  type RunItem,
  type Schedule,
  type ScheduleInput,
  type ScheduleKind,
  type StatusCode,
  scheduleKind,
  scheduleSchema,
  seedOf,
  TASK_STATES,
  type TaskInput,
  type TaskName,
  type TaskRef,
  type TaskState,
  type Trigger,
  taskSchema,
} from "@carillon/core";
export {
  type Attempt,
  bullPrefix,
  type ConnectionSpec,
  connect,
  type IoredisClient,
  type LedgerEntry,
  type Logger,
  type QueueStatus,
  redisError,
  type StatusState,
} from "@carillon/store";
export type { ChangeKind, ChangeScope } from "./client/change.js";
export type { Diagnosis, Finding, Severity } from "./client/doctor-finding.js";
export type { EventsOptions, LiveEvent } from "./client/events.js";
export type { ExplainedEvent, Explanation, Verdict } from "./client/explain.js";
export type { JournalFilter, JournalPage } from "./client/journal.js";
export type { MoveOptions, MoveResult } from "./client/move.js";
export type { RunningFilter, RunningRun } from "./client/running.js";
export type { ItemFilter, ItemPage, RunDetails, Runs } from "./client/runs.js";
export type { StatsPage, TaskStats, TaskStatsRow } from "./client/stats.js";
export type { Status, StatusReason } from "./client/status.js";
export type { Percentiles, RunSummary, SummaryOptions } from "./client/summary.js";
export type { TaskCounts } from "./client/task-reader.js";
export type { Tick, TickList, TickOptions, TickState, TickStrip } from "./client/ticks.js";
export type * from "./client/types.js";
export type { ValidateOptions, Validation } from "./client/validation.js";
export {
  type Definition,
  type DisplayState,
  definitionOf,
  displayState,
  type LastStatus,
  type Task,
  type TaskRevision,
} from "./client/view.js";
export { Client } from "./client.js";
export {
  type CompareCronOptions,
  type CronComparison,
  type CronDifference,
  type CronSide,
  compareCron,
} from "./compare-cron.js";
export type { AttemptContext, Context, ItemContext } from "./context.js";
export { type Environment, readEnvironment } from "./environment.js";
export {
  type AlertEmailOptions,
  alertEmail,
  alertWebhook,
  createGuard,
  type Guard,
  type GuardOptions,
  HttpError,
  type HttpErrorCode,
  type HttpMethod,
  type HttpPayloadSchema,
  type HttpRequestOptions,
  type HttpRequestPayload,
  type HttpRequestSpec,
  type HttpResponse,
  type HttpResult,
  httpRequest,
  type MailTransport,
  type Resolve,
  type SignedRequest,
  type SigningKey,
  type Statuses,
  type StatusRange,
  sendSigned,
  signBody,
  type VerifyOptions,
  verifySignature,
} from "./http/index.js";
export {
  type AnyTaskType,
  defineTask,
  type FanOutHandlers,
  type FanOutOptions,
  type FanOutType,
  type Handler,
  implement,
  type NoPayload,
  type TaskContract,
  type TaskContractOptions,
  type TaskType,
  type TaskTypeOptions,
  type TypedTask,
  task,
} from "./task-type.js";
export type { Ending } from "./worker/ending.js";
export {
  CancelledError,
  LockLostError,
  PermanentError,
  StoppingError,
  TimeLimitError,
} from "./worker/errors.js";
export type {
  RunEvent,
  StopOptions,
  WorkerEvents,
  WorkerOptions,
} from "./worker/options.js";
export { Worker } from "./worker.js";
export { type MetricsRegistry, workerMetrics } from "./worker-metrics.js";
