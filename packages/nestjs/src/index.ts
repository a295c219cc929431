export { Carillon } from "./carillon.js";
export { Task, TaskHandler, type TaskOptions } from "./decorators.js";
export { CarillonHealthIndicator } from "./health.js";
export { CarillonModule } from "./module.js";
export type { CarillonOptions, SetOptions } from "./options.js";
