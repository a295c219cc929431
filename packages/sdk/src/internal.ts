/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export { nearest, nearestRemedy, shownDestination, shownTarget } from "@carillon/core/internal";
export { defaultLogger, Store, type StoredToken, TOKEN_ROLES, type TokenRole } from "@carillon/store";
export { internalsOf, storeOf } from "@carillon/store/internal";
export { CHANGE_KINDS, type ChangeFacts, shown } from "./client/change.js";
export { foresee } from "./client/forecast.js";
export { assertEntry, assertRef, notFound, shortText, wholeNumber } from "./client/input.js";
export { running } from "./client/running.js";
export { type Scope, scopeOf } from "./client/scope.js";
export { triggerOne } from "./client/task-actions.js";
export { checkedConditions, countByFilter, storedFilter } from "./client/task-reader.js";
export { TaskWriter } from "./client/task-writer.js";
export { TimeSlice } from "./client/time-slice.js";
export { undelivered } from "./client/undelivered.js";
export { instant, roundedInstant } from "./instant.js";
export type { WorkerClock } from "./worker/clock.js";
export { type WorkerSeams, withWorkerSeams } from "./worker/seams.js";
