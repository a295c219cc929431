import type { TaskContract } from "@carillon/sdk";
import type { InputTo } from "../operator.js";
import type { SetTask } from "./set.js";

/** Input of `sets.plan` and `sets.apply`. */
export type SetConfig = InputTo<"sets.plan">;

/** Fields for tasks that do not have them: all of a task but its id. */
export interface SetDefaults extends Partial<Omit<SetTask, "id" | "renamedFrom">> {
  /** IANA zone of schedules by a clock, `cron` and `calendar`, that name none. */
  timezone?: string | undefined;
}

/** Differences of one environment. */
export interface SetEnvironment {
  /** They replace fields of the `defaults` of all environments. */
  defaults?: SetDefaults | undefined;
  /** Fields of single tasks by `[owner/]id`, which replace those of the task; `false`: the environment does not have it. */
  tasks?: Readonly<Record<string, Partial<Omit<SetTask, "id">> | false>> | undefined;
}

type WithDefaults<Given> = Omit<SetTask, keyof Given> & Partial<Pick<SetTask, keyof Given & keyof SetTask>>;

/** The content of a `carillon.config` file. */
export interface SetFile<Defaults extends SetDefaults = SetDefaults> extends Omit<SetConfig, "tasks"> {
  /** A task needs only those fields that `defaults` does not give. Its own fields replace them as a whole. */
  tasks: readonly WithDefaults<Defaults>[];
  defaults?: Defaults | undefined;
  /** By name, as `carillon plan --env NAME` has it. If there are any, one must be named. */
  environments?: Readonly<Record<string, SetEnvironment>> | undefined;
  /** Task types, also without their code: the payloads of their tasks are checked by their schemas. */
  types?: readonly TaskContract[] | undefined;
}

/**
 * Returns its argument, and has its types checked: a set of tasks for `carillon plan` and `carillon apply`.
 *
 * @example
 * export default defineConfig({
 *   set: "billing",
 *   defaults: { queue: "billing", timezone: "Europe/Berlin" },
 *   tasks: [{ id: "invoices", type: "invoice", schedule: { cron: "0 6 1 * *" } }],
 * });
 */
export function defineConfig<Defaults extends SetDefaults = Record<never, never>>(
  config: SetFile<Defaults>,
): SetFile<Defaults> {
  return config;
}
