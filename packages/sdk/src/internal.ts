/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export { nearest, nearestRemedy, shownDestination, shownTarget } from "@carillon/core/internal";
export { defaultLogger, Store, type StoredToken, TOKEN_ROLES, type TokenRole } from "@carillon/store";
export { internalsOf, storeOf } from "@carillon/store/internal";
export { shown } from "./client/change.js";
export { assertEntry } from "./client/changes.js";
export { assertRef, notFound, shortText, wholeNumber } from "./client/input.js";
export { load } from "./client/load.js";
export { running } from "./client/running.js";
export { type Scope, scopeOf } from "./client/scope.js";
export { triggerOne } from "./client/task-actions.js";
export { checkedConditions, countByFilter, storedFilter } from "./client/task-reader.js";
export { TaskWriter } from "./client/task-writer.js";
export { TimeSlice } from "./client/time-slice.js";
export { undelivered } from "./client/undelivered.js";
export { instant } from "./instant.js";
export type { WorkerClock } from "./worker/clock.js";
export { type WorkerSeams, withWorkerSeams } from "./worker/seams.js";
