/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export { REDIS_CODES, SKIP_REASONS, TRIGGERS } from "@carillon/core/internal";
export { bullVersion, CLAIM_REFUSALS, Coverage, readStatus, Store, VERSION } from "@carillon/store";
export { type StoreSeams, withSeams } from "@carillon/store/internal";
export { withNodeSeams } from "./seams.js";
