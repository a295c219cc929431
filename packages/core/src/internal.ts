/**
 * For Carillon's own packages and tests. Nothing here is part of the public API: it may change in any release.
 *
 * @packageDocumentation
 */
export * from "./alerts.js";
export * from "./cause.js";
export * from "./decide.js";
export * from "./decide-end.js";
export * from "./decide-items.js";
export * from "./decide-step.js";
export * from "./decide-trigger.js";
export * from "./decision.js";
export * from "./defaults.js";
export * from "./defined.js";
export * from "./destinations/index.js";
export * from "./display.js";
export * from "./errors.js";
export * from "./freeze.js";
export * from "./grouped.js";
export * from "./ids.js";
export * from "./job.js";
export * from "./json.js";
export * from "./names.js";
export * from "./nearest.js";
export * from "./next-thawed.js";
export * from "./options.js";
export * from "./overlap.js";
export * from "./policies.js";
export * from "./quota.js";
export * from "./retry.js";
export * from "./run.js";
export * from "./schedule/index.js";
export * from "./schedule-cache.js";
export * from "./shapes.js";
export * from "./shard.js";
export * from "./status-reason.js";
export * from "./storm.js";
export * from "./task.js";
export type * from "./task-input.js";
export * from "./task-schedule.js";
export * from "./task-state.js";
export * from "./words/display.js";
export * from "./words/reasons.js";
export * from "./words/times.js";
