import type { InputTo } from "@carillon/ops";
import {
  CONDITION_NAMES,
  CONDITIONS,
  type ConditionName,
  conditionBesideName,
  conditionsIn,
} from "@carillon/sdk/conditions";
import { type Command, type Globals, TASK } from "../command.js";
import { misuse } from "../failure.js";
import { fieldsOf, type Taking } from "../fields.js";
import { kebab } from "../text.js";

/** Options that select tasks. */
export type Conditions = { [Name in ConditionName]?: NonNullable<InputTo<"tasks.deleteMany">[Name]> };

/** Operations on the tasks that conditions select, or on their runs. */
export type OnMany =
  | `tasks.${"pause" | "resume" | "trigger" | "edit" | "tag" | "delete"}Many`
  | "backfills.startMany"
  | "runs.cancelMany";

/** `[owner/]id` names a task, so --queue and --owner are no options of a list: each command words them. */
export const SELECTING = CONDITION_NAMES.filter((name) => !("ofName" in CONDITIONS[name]));

/** Adds an option for each condition, but for `--queue` and the global `--owner`. */
export function conditionOptions<Options extends Globals>(command: Command<Options>) {
  return command.takes("tasks.list", SELECTING);
}

/** @param but fields that the command takes by itself */
type How<Name extends OnMany> = Taking<Name> & { readonly but?: readonly string[] };

/** A command about one task, several tasks, or with `--all` all that the conditions select. */
export function tasksCommand<Name extends OnMany>(
  program: Command,
  verb: string,
  summary: string,
  operation: Name,
  how: How<Name> = {},
) {
  const about = { queue: "the task's queue; without a task: those of this queue", ...how.about };
  return manyOptions(program.verb(verb, summary).argument("[tasks...]", TASK), operation, { ...how, about });
}

/** An option for each field of an operation on many tasks, and `--all`. */
export function manyOptions<Name extends OnMany>(
  command: Command,
  operation: Name,
  { but = [], ...how }: How<Name>,
) {
  const fields = fieldsOf(operation).filter((name) => !["owner", "tasks", ...but].includes(name));
  return command
    .takes(operation, fields, how)
    .flag("--all", "all that these conditions and --owner select; refused without it");
}

/** The conditions that are given. `--owner` too: a bound client shows its owner's tasks only. */
export function conditionsOf(options: Conditions): InputTo<"tasks.deleteMany"> {
  return conditionsIn(options);
}

/**
 * Refuses conditions next to the name of a task, which would be ignored.
 * @param more further options that mean many tasks
 * @throws `INVALID_OPTION`
 */
export function refuseBesideTask<Options extends Conditions>(
  options: Options,
  more: readonly (keyof Options & string)[],
): void {
  const field = conditionBesideName(options) ?? more.find((name) => options[name] !== undefined);
  if (field !== undefined)
    throw misuse(kebab(field), "cannot be combined with a task.", "Leave one of the two out.");
}

/** `owner acme, failing` */
export function conditionsText(conditions: object): string {
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined);
  return given
    .map(([name, value]) => (value === true ? kebab(name) : `${kebab(name)} ${String(value)}`))
    .join(", ");
}
