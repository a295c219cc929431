export type { Alert, Incident } from "./alerts.js";
export type { Backfill, DueBackfill, NewBackfill } from "./backfills.js";
export {
  type ChangedSetting,
  isAlive,
  isSilent,
  type LackedType,
  type LostHistory,
  type NodeInfo,
  type WorkerInfo,
  type WorkerRun,
} from "./beats.js";
export { bullChildren } from "./bull/bull-keys.js";
export type { ItemStart, NewItem, TakenItem } from "./bull/items.js";
export { bullVersion } from "./bull/load.js";
export type { QueuePause, QueueState, WorkerConnections } from "./bull/queues.js";
export type { Turn, TurnWorker } from "./bull/turn-worker.js";
export type { CalendarOutcome, SharedCalendar } from "./calendars.js";
export { ChangeLog, type StoredChange } from "./changes.js";
export type { ItemsRetried, TriggerResult } from "./claim/asked.js";
export * from "./claim/claims.js";
export type { DueBatch, DueName, DueRange, WhichDue } from "./claim/due.js";
export { dueTask } from "./claim/due-task.js";
export type { BackfillStep, ClaimItem } from "./claim/pack.js";
export type { DueEntry } from "./claim/writes.js";
export type { QueueNews, QueuePosition, StreamEntry } from "./events.js";
export { Heartbeat } from "./heartbeat.js";
export { newToken } from "./ids.js";
export { bullPrefix, type NamespaceKeys, namespaceKeys, type QueueKeys } from "./keys.js";
export { defaultLogger, type Logger } from "./logger.js";
export type { Observation } from "./observations.js";
export {
  assertConnection,
  type ConnectionProfile,
  type ConnectionSpec,
  connect,
  failsForAll,
  type IoredisClient,
  isUnknown,
  type RedisClient,
  readConnection,
  redisError,
  withoutPassword,
} from "./redis/connection.js";
export type { Failpoint } from "./redis/failpoints.js";
export type { ConnectionEars } from "./redis/link.js";
export type { Lease, Mutex } from "./redis/mutex.js";
export { type ServerInfo, type SlowCommand, unsafeSettings } from "./redis/server-info.js";
export type { Subscription } from "./redis/subscription.js";
export { untilRedisAnswers } from "./redis/until-redis-answers.js";
export { assertKnown } from "./registry.js";
export { type Attempt, decodeOutcomes, LONGEST_TEXT, usualMsOf } from "./run/codec.js";
export type { Failure, FailureError } from "./run/failures.js";
export type { Skip } from "./run/ledger.js";
export type { Ended, Recent, ShortRun } from "./run/recent.js";
export type { LastRun } from "./run/run-reads.js";
export {
  begunOf,
  type EndWord,
  type Settlement,
  type SettleWord,
  type StartResult,
  type Worked,
} from "./run/run-scripts.js";
export { REDIS_TIME, type Sabotage, type TimeSource } from "./script/context.js";
export { PARTS } from "./script/facts.js";
export type { TaskSet } from "./sets.js";
export { Coverage } from "./status/coverage.js";
export { type NodeState, type NodeView, nodeView } from "./status/node-view.js";
export type { QueueStatus } from "./status/queue-reading.js";
export { readStatus, type StatusFacts, type StatusState } from "./status/status.js";
export { type Channel, Store, type StoreOptions } from "./store.js";
export {
  type ForeignTask,
  isForeign,
  isRetired,
  type RetentionOptions,
  type Revision,
  type StoredTask,
} from "./task/codec.js";
export type { TaskCounts } from "./task/counts.js";
export type { PutOutcome, PutResult } from "./task/draft.js";
export { ABSENT, type PutOptions } from "./task/draft.js";
export type { TaskPage } from "./task/listing.js";
export { copyOf, heldFor, moveOf } from "./task/moves.js";
export type { TaskFilter } from "./task/name-sets.js";
export { nextOf } from "./task/next-of.js";
export type { PlannedPut } from "./task/put.js";
export type { Replayed } from "./task/tasks.js";
export type { Timing } from "./task/timings.js";
export { assertTelemetry, type ClaimSpan, type ClaimTracer } from "./telemetry.js";
export { digestOf, newSecret, type StoredToken, TOKEN_ROLES, type TokenRole } from "./tokens.js";
export { VERSION } from "./version.js";
