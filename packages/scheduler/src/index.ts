export type { Decided, Reconciled, SchedulerEvents } from "./events.js";
export type { Logger, SchedulerOptions } from "./options.js";
export { Scheduler, type TickReport } from "./scheduler.js";
export { VERSION } from "./version.js";
