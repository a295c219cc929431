/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */

export { type BullScheduler, firedSince, readBullSchedulers } from "@carillon/store/internal";
export { HTTP_OPERATIONS, type HttpOperation, rightsAt, statusOf } from "./http.js";
export { importBullmq } from "./import/bullmq.js";
export { fieldTable, readFields } from "./import/fields.js";
export {
  type Imported,
  type ImportOptions,
  intervalOf,
  Notes,
  settle,
  type TheirTimes,
} from "./import/imported.js";
export { parseInput } from "./input.js";
export { type InputField, inputFields } from "./input-fields.js";
export { perform } from "./operator.js";
export { Redactor, redactorOf } from "./redact.js";
export type { SetTask } from "./sets/set.js";
export { withBullmq } from "./shadow/bullmq.js";
export { withFields } from "./tasks/fields.js";
