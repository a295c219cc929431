import type { AnswerTo, InputTo, Operator } from "@carillon/ops";
import type { Client } from "@carillon/sdk";
import { type Globals, taskRef, withClient } from "../command.js";
import { EXIT } from "../exit-codes.js";
import { misuse } from "../failure.js";
import type { Output } from "../output.js";
import { type Column, table } from "../table.js";
import { printable } from "../text.js";
import { type Conditions, conditionsOf, conditionsText, refuseBesideTask } from "./conditions.js";

/** Options that select tasks: one task, several, or with `--all` all that the conditions select. */
export interface Named extends Globals, Conditions {
  all?: boolean;
  dryRun?: boolean;
}

/** Selects many tasks; `dryRun` changes nothing. */
export type Filter = InputTo<"tasks.deleteMany">;
type BulkResult = AnswerTo<"tasks.deleteMany">;
type BulkSample = BulkResult["sample"][number];

/** An answer about many tasks, or about many of their runs. */
type Result<Row> = Pick<BulkResult, "count" | "refused"> & { readonly sample: readonly Row[] };

/** An operation on many tasks. */
export interface Deed<Row = BulkSample, Answer extends Result<Row> = Result<Row>> {
  readonly verb: string;
  readonly past: string;
  act(ops: Operator, input: Filter, client: Client): Promise<Answer>;
  /** Its subjects. Default: tasks. */
  readonly noun?: string;
  readonly columns?: readonly Column<Row>[];
  /** Conditions besides the usual ones, for commands that know them. */
  readonly conditions?: Readonly<Record<string, string | undefined>>;
  /** Further lines about the answer. */
  readonly more?: (answer: Answer) => string;
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
 * @throws `INVALID_OPTION`, without any effect, if no tasks are selected, or if conditions are given without `--all`
 */
export async function doToMany<Row = BulkSample, Answer extends Result<Row> = Result<Row>>(
  deed: Deed<Row, Answer>,
  tasks: readonly string[],
  options: Named,
  out: Output,
): Promise<void> {
  const { all, dryRun = false } = options;
  const filter = selectionOf(tasks, options, deed.conditions);
  // Without a count: of many tasks that takes long.
  if (!all && !dryRun && !filter.tasks) {
    const whose = conditionsText({ ...filter, ...deed.conditions });
    throw misuse(
      "all",
      `missing. ${deed.verb} means all that match (${whose}).`,
      "Add --dry-run to see how many and which, --all to go on.",
    );
  }
  const result = await withClient(options, (client, ops) => deed.act(ops, { ...filter, dryRun }, client));
  await showMany(deed, result, options, out);
}

/** Prints the answer of a call about many tasks: how many, which it would be, and what was refused. */
export async function showMany<Row = BulkSample, Answer extends Result<Row> = Result<Row>>(
  deed: Omit<Deed<Row, Answer>, "act">,
  result: Answer,
  { dryRun = false, json = false }: { readonly dryRun?: boolean; readonly json?: boolean },
  out: Output,
): Promise<void> {
  if (result.refused.count > 0) out.exitCode = EXIT.refused;
  if (json) return out.json<Result<Row>>(result);
  const head = `${dryRun ? `${deed.verb} means` : deed.past} ${counted(deed, result.count)}\n`;
  const more = deed.more?.(result) ?? "";
  await out.write(`${head}${more}${dryRun ? sample(deed.columns, result, out) : ""}`);
  refusals(result, out);
}

const TASKS: Column<BulkSample>[] = [
  { title: "TASK", value: ({ owner, id }) => `${owner}/${id}` },
  { title: "QUEUE", value: ({ queue }) => queue, rank: 2, least: 8 },
  { title: "PAUSED", value: ({ paused }, { when }) => (paused === undefined ? "" : when(paused.at)) },
  { title: "BY", value: ({ paused }) => paused?.by ?? "", rank: 1, least: 8 },
  { title: "NOTE", value: ({ paused }) => paused?.note ?? "", least: 12 },
];

function sample<Row>(
  columns: readonly Column<Row>[] | undefined,
  { count, sample }: Result<Row>,
  out: Output,
): string {
  if (count === 0) return "";
  const more = count > sample.length ? `… and ${count - sample.length} more\n` : "";
  return `${table(columns ?? (TASKS as unknown as Column<Row>[]), sample, out)}${more}`;
}

export function refusals(
  { refused: { count, sample } }: Pick<BulkResult, "refused">,
  out: Output,
  noun?: string,
): void {
  if (count === 0) return;
  const lines = sample.map(({ task, code, message }) => {
    const name = typeof task === "string" ? task : `${task.owner ?? ""}/${task.id}`.replace(/^\//, "");
    return `  ${name}: ${printable(message)} [${code}]\n`;
  });
  const more = count > sample.length ? `  … and ${count - sample.length} more\n` : "";
  out.stderr.write(`${counted({ noun }, count)} refused:\n${lines.join("")}${more}`);
}

function counted({ noun = "task" }: { readonly noun?: string | undefined }, count: number): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}
