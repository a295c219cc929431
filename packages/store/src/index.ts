export type { Alert } from "./alerts.js";
export type { Backfill } from "./backfills.js";
export { jobOptions } from "./bullmq.js";
export type { CalendarOutcome, SharedCalendar } from "./calendars.js";
export * from "./claims.js";
export type { DueEntry } from "./commit.js";
export type { BackfillStep, ClaimItem } from "./commit-items.js";
export {
  assertConnection,
  type ConnectionProfile,
  type ConnectionSpec,
  connect,
  failsForAll,
  isUnknown,
  type RedisClient,
  readConnection,
  redisError,
  withoutPassword,
} from "./connection.js";
export type { Failpoint } from "./failpoints.js";
export { bullPrefix, type NamespaceKeys, namespaceKeys, type QueueKeys } from "./keys.js";
export type { Lease, Mutex } from "./mutex.js";
export { ABSENT, type PutOutcome, type PutResult } from "./put.js";
export { assertKnown, isAlive, type NodeInfo } from "./registry.js";
export { type Attempt, decodeOutcomes } from "./run-codec.js";
export type { EndWord, LedgerEntry, Settlement, SettleWord, StartResult, Worked } from "./runs.js";
export { REDIS_TIME, type Sabotage, type TimeSource } from "./scripts.js";
export { Store, type StoreOptions, type TestSeams } from "./store.js";
export type { Subscription } from "./subscription.js";
export {
  DEFAULT_CRASH,
  DEFAULT_RETENTION,
  definitionFields,
  type ForeignTask,
  isForeign,
  type Retention,
  revisionOf,
  type StoredTask,
} from "./task-codec.js";
export type { TaskFilter, TaskPage } from "./tasks.js";
