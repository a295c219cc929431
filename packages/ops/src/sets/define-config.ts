import type { InputTo } from "../operator.js";

/** The content of a `carillon.config` file: what `sets.plan` takes. */
export type SetConfig = InputTo<"sets.plan">;

/**
 * Returns its argument, and has its types checked: a set of tasks for `carillon plan` and `carillon apply`.
 *
 * @example
 * export default defineConfig({
 *   set: "billing",
 *   tasks: [{ id: "invoices", type: "invoice", queue: "billing", schedule: { cron: "0 6 1 * *" } }],
 * });
 */
export function defineConfig(config: SetConfig): SetConfig {
  return config;
}
