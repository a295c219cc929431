export {
  CarillonError,
  calendarZone,
  canonicalSchedule,
  compileSchedule,
  describeSchedule,
  ERROR_CODES,
  type ErrorCode,
  isCarillonError,
  type JobData,
  type Json,
  lintSchedule,
  type Occurrence,
  OUTCOMES,
  type Outcome,
  parseDuration,
  parseInstant,
  previewSchedule,
  type Run,
  type Schedule,
  scheduleSchema,
  TASK_STATES,
  type TaskInput,
  type TaskName,
  type TaskRef,
  type TaskState,
  type Trigger,
  taskSchema,
} from "@carillon/core";
export {
  type Alert,
  type Attempt,
  type Backfill,
  bullPrefix,
  type ConnectionSpec,
  connect,
  type LedgerEntry,
  redisError,
  type SharedCalendar,
} from "@carillon/store";
export type { BackfillOptions, PutBackfill } from "./backfill.js";
export type { BulkFilter } from "./bulk.js";
export { Client } from "./client.js";
export type * from "./client-types.js";
export type { AttemptContext, Context, ItemContext } from "./context.js";
export { type Environment, readEnvironment } from "./environment.js";
export type { ExplainedEvent, Explanation, Verdict } from "./explain.js";
export {
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
export type { JournalFilter, JournalPage } from "./journal.js";
export type { TaskStats } from "./stats.js";
export {
  type AnyTaskType,
  defineTask,
  type FanOutOptions,
  type FanOutType,
  type TaskType,
  type TaskTypeOptions,
  type TypedTask,
} from "./task-type.js";
export type { Upcoming } from "./up-next.js";
export type { Validation } from "./validation.js";
export {
  type Definition,
  type DisplayState,
  definitionOf,
  displayState,
  type LastStatus,
  type NodeView,
  type Task,
} from "./view.js";
export type { WorkerClock } from "./worker/clock.js";
export type { Ending } from "./worker/ending.js";
export {
  CancelledError,
  LockLostError,
  PermanentError,
  StoppingError,
  TimeLimitError,
} from "./worker/errors.js";
export type { ItemBackoff } from "./worker/item-options.js";
export type {
  RunEvent,
  StopOptions,
  WorkerEvents,
  WorkerLogger,
  WorkerOptions,
} from "./worker/options.js";
export { Worker } from "./worker.js";
