import type { InputTo } from "@carillon/ops";
import type { TaskState } from "@carillon/sdk";
import {
  CONDITION_NAMES,
  CONDITIONS,
  type ConditionName,
  conditionBesideName,
  conditionsIn,
} from "@carillon/sdk/conditions";
import { Option } from "commander";
import { type Command, type Globals, TASK } from "../command.js";
import { misuse } from "../failure.js";
import { outcomes } from "./outcomes.js";

/** Options that select tasks. */
export type Conditions = { [Name in ConditionName]?: NonNullable<InputTo<"tasks.deleteMany">[Name]> };

/** `[owner/]id` names a task, so --queue and --owner are no options of a list: each command words them. */
const OPTIONS = CONDITION_NAMES.filter((name) => !("ofName" in CONDITIONS[name]));
const SHORT: { readonly [Name in ConditionName]?: string } = { tag: "-t, ", search: "-s, " };
const STATES: readonly TaskState[] = ["scheduled", "paused", "finished"];

/** The name of an option as it is typed, without dashes. */
export function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Adds an option for each condition, but for `--queue` and the global `--owner`. */
export function conditionOptions<Options extends Globals>(command: Command<Options>) {
  for (const name of OPTIONS) command.addOption(optionOf(name));
  return command as unknown as Command<Options & Conditions>;
}

function optionOf(name: ConditionName): Option {
  const { kind, help } = CONDITIONS[name];
  const flags = `${SHORT[name] ?? ""}--${flagOf(name)}`;
  if (kind === "flag") return new Option(flags, help);
  if (kind === "outcomes") return new Option(`${flags} <outcomes>`, help).argParser(outcomes);
  const option = new Option(`${flags} <${kind === "name" ? name : kind}>`, help);
  return kind === "state" ? option.choices([...STATES]) : option;
}

/** A command about one task, several tasks, or with `--all` all that the conditions select. */
export function tasksCommand(program: Command, name: string, summary: string) {
  const command = program
    .verb(name, summary)
    .argument("[tasks...]", TASK)
    .flag("-q, --queue <queue>", "the task's queue; without a task: those of this queue");
  return manyOptions(command);
}

/** The options that select many tasks, besides `--queue`. */
export function manyOptions<Options extends Globals>(command: Command<Options>) {
  return conditionOptions(command)
    .flag("--all", "all that these conditions and --owner select; refused without it")
    .flag("--dry-run", "change nothing, show how many and which are meant");
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
    throw misuse(flagOf(field), "cannot be combined with a task.", "Leave one of the two out.");
}

/** `owner acme, failing` */
export function conditionsText(conditions: object): string {
  const given = Object.entries(conditions).filter(([, value]) => value !== undefined);
  return given
    .map(([name, value]) => (value === true ? flagOf(name) : `${flagOf(name)} ${String(value)}`))
    .join(", ");
}
