export type { Logger } from "@carillon/store";
export { VERSION } from "@carillon/store";
export type { Decided, Reconciled, SchedulerEvents } from "./events.js";
export type { SchedulerOptions, WatchdogOptions } from "./options.js";
export type { NotReadyReason, Readiness } from "./readiness.js";
export { Scheduler, type TickReport } from "./scheduler.js";
