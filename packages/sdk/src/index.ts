export {
  CarillonError,
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
  type Outcome,
  parseDuration,
  previewSchedule,
  type Run,
  type Schedule,
  scheduleSchema,
  type TaskInput,
  type TaskName,
  type TaskRef,
  type TaskState,
  type Trigger,
  taskSchema,
} from "@carillon/core";
export { bullPrefix, type ConnectionSpec, connect, type LedgerEntry, redisError } from "@carillon/store";
export { Client } from "./client.js";
export type * from "./client-types.js";
export type { Context } from "./context.js";
export { type Environment, readEnvironment } from "./environment.js";
export {
  type AnyTaskType,
  defineTask,
  type TaskType,
  type TaskTypeOptions,
  type TypedTask,
} from "./task-type.js";
export type { NodeView, Task } from "./view.js";
export { Worker, type WorkerEvents, type WorkerLogger, type WorkerOptions } from "./worker.js";
