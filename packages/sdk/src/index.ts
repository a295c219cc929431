export {
  CarillonError,
  type Duration,
  type ErrorCode,
  isCarillonError,
  type JobData,
  type Json,
  nameOf,
  type Occurrence,
  type Outcome,
  type Run,
  type Schedule,
  type ScheduleInput,
  type StatusCode,
  type TaskInput,
  type TaskName,
  type TaskRef,
  type TaskState,
  type Trigger,
  type TriggerOptions,
  textOfName,
} from "@carillon/core";
export {
  type Attempt,
  bullPrefix,
  type ConnectionSpec,
  type IoredisClient,
  type Logger,
  type Skip,
} from "@carillon/store";
export type { EventsOptions, LiveEvent } from "./client/events.js";
export type { JournalFilter, JournalPage } from "./client/journal.js";
export type { Preview } from "./client/preview.js";
export type { RunningFilter, RunningRun } from "./client/running.js";
export type { RunDetails, Runs } from "./client/runs.js";
export type { TaskStats } from "./client/stats.js";
export type {
  AuthorOptions,
  ClientOptions,
  DeleteOptions,
  EnqueueOptions,
  EnqueueResult,
  ListOptions,
  PauseOptions,
  PutManyOptions,
  PutOptions,
  PutResult,
  ResumeOptions,
  TaskPage,
  TriggerResult,
  Warning,
} from "./client/types.js";
export {
  type Definition,
  definitionOf,
  type Task,
} from "./client/view.js";
export { Client } from "./client.js";
export type { AttemptContext, Context, ItemContext } from "./context.js";
export { type Environment, readEnvironment } from "./environment.js";
export { type HttpRequestOptions, httpRequest } from "./http/index.js";
export { PermanentError } from "./permanent-error.js";
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
  StoppingError,
  TimeLimitError,
} from "./worker/errors.js";
export type { Middleware } from "./worker/middleware.js";
export type {
  RunEvent,
  StopOptions,
  WorkerEvents,
  WorkerOptions,
} from "./worker/options.js";
export { Worker } from "./worker.js";
export { type PromClient, workerMetrics } from "./worker-metrics.js";
