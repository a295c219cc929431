/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export {
  ALERT_KINDS,
  ALERTS_QUEUE,
  type AlertFormat,
  type AlertKind,
  ERROR_CODES,
  ITEM_STATES,
  type ItemState,
  OUTCOMES,
  type PoliciesInput,
  type RunItem,
  TASK_STATES,
} from "@carillon/core";
export {
  instant,
  nearest,
  nearestRemedy,
  readDelivery,
  roundedInstant,
  shownTarget,
} from "@carillon/core/internal";
export {
  connect,
  defaultLogger,
  type QueueStatus,
  redisError,
  type StatusState,
  Store,
  type StoredToken,
  TOKEN_ROLES,
  type TokenRole,
} from "@carillon/store";
export { internalsOf, storeOf } from "@carillon/store/internal";
export {
  CHANGE_KINDS,
  type ChangeFacts,
  type ChangeKind,
  type ChangeScope,
  differenceOf,
  shown,
} from "./client/change.js";
export {
  assertEntry,
  assertRef,
  at,
  type CheckedTask,
  notFound,
  shortText,
  wholeNumber,
} from "./client/input.js";
export { payloadSchemas } from "./client/payload-schemas.js";
export { previewOf } from "./client/preview.js";
export { running } from "./client/running.js";
export { findRun } from "./client/runs.js";
export { type Scope, scopeOf } from "./client/scope.js";
export type { StatsPage, TaskStatsRow } from "./client/stats.js";
export { triggerOne } from "./client/task-actions.js";
export {
  checkedConditions,
  countByFilter,
  listStats,
  storedFilter,
  tasksWithStatus,
} from "./client/task-reader.js";
export { TaskWriter } from "./client/task-writer.js";
export { undelivered } from "./client/undelivered.js";
export type { Validation } from "./client/validation.js";
export {
  type Definition,
  type Drift,
  displayState,
  driftOf,
  inputOf,
  revisionView,
  type TaskRevision,
} from "./client/view.js";
export { validatePayload } from "./task-type.js";
export type { Telemetry } from "./telemetry.js";
export type { WorkerClock } from "./worker/clock.js";
export { type WorkerSeams, withWorkerSeams } from "./worker/seams.js";
