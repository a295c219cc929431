/**
 * For Carillon's own programs and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export { HTTP_OPERATIONS, type HttpOperation, rightsAt, statusOf } from "./http.js";
export { parseInput } from "./input.js";
export { perform } from "./operator.js";
