import type { AnswerTo, InputTo } from "@carillon/ops";
import type { Client } from "@carillon/sdk";
import { CONDITION_NAMES } from "@carillon/sdk/conditions";
import { ask, type Globals, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import { fieldsOf } from "../fields.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { counted, printable } from "../text.js";
import {
  type Conditions,
  conditionsOf,
  conditionsText,
  type OnMany,
  refuseBesideTask,
} from "./conditions.js";

/** Options that select tasks: one task, several, or with `--all` all that the conditions select. */
export interface Named extends Globals, Conditions {
  all?: boolean;
  dryRun?: boolean;
  by?: string;
}

/** Selects many tasks; `dryRun` changes nothing. */
type Filter = InputTo<"tasks.deleteMany">;
type BulkResult = AnswerTo<"tasks.deleteMany">;

/** An answer about many tasks, or about many of their runs. */
type Result = Pick<BulkResult, "count" | "refused"> & { readonly sample: readonly object[] };

interface Words<Answer extends Result> {
  readonly verb: string;
  readonly past: string;
  /** Its subjects. Default: tasks. */
  readonly noun?: string;
  readonly columns?: readonly Column<Answer["sample"][number]>[];
  /** Further lines about the answer. */
  readonly more?: (answer: Answer) => string;
}

/** An operation on many tasks. */
export interface Deed<Name extends OnMany> extends Words<AnswerTo<Name>> {
  readonly calls: Name;
  /** Fields whose options are not their values. */
  readonly input?: (client: Client) => Promise<Partial<InputTo<Name>>>;
  /** Conditions besides the usual ones, for commands that know them. */
  readonly conditions?: Readonly<Record<string, string | undefined>>;
}

/**
 * The task of a command about one task; undefined: the call is about many.
 * @throws `INVALID_OPTION`
 */
export function onlyTask(tasks: readonly string[], options: Named): string | undefined {
  if (tasks.length > 0) refuseBesideTask(options, ["all"]);
  return tasks.length === 1 && !options.dryRun ? tasks[0] : undefined;
}

/**
 * Names or conditions.
 * @param more further conditions of the command
 * @throws `INVALID_OPTION` if there is neither
 */
export function selectionOf(tasks: readonly string[], options: Named, more: object = {}): Filter {
  const named = tasks.map((task) => taskRef(task, options.queue, options.owner));
  const filter: Filter = named.length > 0 ? { tasks: named } : conditionsOf(options);
  if (Object.values({ ...filter, ...more }).some((value) => value !== undefined)) return filter;
  throw misuse("TASK", "missing.", "Give tasks; or --owner, --tag, --queue or --failing, and --all.");
}

/**
 * Calls an operation on the tasks that are named or selected, with the fields that options give.
 * @throws `INVALID_OPTION`, without any effect, if no tasks are selected, or if conditions are given without `--all`
 */
export async function doToMany<Name extends OnMany>(
  deed: Deed<Name>,
  tasks: readonly string[],
  options: Named,
  out: Output,
): Promise<void> {
  const { all, dryRun = false, by } = options;
  const filter = selectionOf(tasks, options, deed.conditions);
  // Does not count them first, which takes long for many tasks.
  if (!all && !dryRun && !filter.tasks) {
    const whose = conditionsText({ ...filter, ...deed.conditions });
    throw misuse(
      "all",
      `missing. ${deed.verb} means all that match (${whose}).`,
      "Add --dry-run to see how many and which, --all to go on.",
    );
  }
  const names: readonly string[] = fieldsOf(deed.calls);
  const fields = Object.entries(options).filter(
    ([name]) => names.includes(name) && !CONDITION_NAMES.some((condition) => condition === name),
  );
  const result = await withClient(options, async (client, ops) => {
    const input = { ...Object.fromEntries(fields), ...filter, dryRun, ...(await deed.input?.(client)) };
    return ask(ops, deed.calls, input as InputTo<Name>, by);
  });
  await showMany<AnswerTo<Name>>(deed, result, options, out);
}

/** Prints the answer of a call about many tasks: how many, which it would be, and what was refused. */
export async function showMany<Answer extends Result>(
  deed: Words<Answer>,
  result: Answer,
  { dryRun = false, json = false }: { readonly dryRun?: boolean; readonly json?: boolean },
  out: Output,
): Promise<void> {
  if (result.refused.count > 0) out.exitCode = EXIT.refused;
  if (json) return out.json<Result>(result);
  const head = `${dryRun ? `${deed.verb} means` : deed.past} ${counted(result.count, deed.noun ?? "task")}\n`;
  const more = deed.more?.(result) ?? "";
  await out.write(`${head}${more}${dryRun ? sample(deed.columns, result, out) : ""}`);
  refusals(result, out);
}

const TASKS: Column<BulkResult["sample"][number]>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: "queue", rank: 2, least: 8 },
  { title: "PAUSED", value: ({ paused }, { when }) => (paused === undefined ? "" : when(paused.at)) },
  { title: "BY", value: ({ paused }) => paused?.by ?? "", rank: 1, least: 8 },
  { title: "NOTE", value: ({ paused }) => paused?.note ?? "", least: 12 },
];

function sample(columns: readonly Column<never>[] = TASKS, { count, sample }: Result, out: Output): string {
  if (count === 0) return "";
  const more = count > sample.length ? `… and ${count - sample.length} more\n` : "";
  return `${table(columns, sample as never[], out)}${more}`;
}

export function refusals(
  { refused: { count, sample } }: Pick<BulkResult, "refused">,
  out: Output,
  noun = "task",
): void {
  if (count === 0) return;
  const lines = sample.map(({ task, code, message }) => {
    const name = typeof task === "string" ? task : `${task.owner ?? ""}/${task.id}`.replace(/^\//, "");
    return `  ${name}: ${printable(message)} [${code}]\n`;
  });
  const more = count > sample.length ? `  … and ${count - sample.length} more\n` : "";
  out.stderr.write(`${counted(count, noun)} refused:\n${lines.join("")}${more}`);
}
