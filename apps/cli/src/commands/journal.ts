import type { InputTo } from "@carillon/ops";
import { FAILURES } from "@carillon/ops/words";
import type { Client, Duration, JournalFilter, Outcome } from "@carillon/sdk";
import { type Command, type OptionsOf, type Register, taskRef } from "../command.js";
import { misuse } from "../failure.js";
import { momentsOf } from "../moment.js";
import { table } from "../table.js";
import { failuresText } from "./failures-text.js";
import { JOURNAL_COLUMNS } from "./run-columns.js";

const FILTER = ["queue", "outcome", "text", "took", "node", "from", "to", "limit", "cursor"] as const;

const journalCommand = (program: Command) =>
  program
    .verb(
      "journal",
      "the runs that are over, of one task or all",
      "Lists the runs that are over, of all queues, by their end, newest first.",
    )
    .argument("[task]", "[owner/]id; default all tasks")
    .takes("runs.journal", FILTER)
    .flag("--failures", "that failed, timed out, crashed or were lost")
    .flag("--slowest", "slowest first, instead of newest")
    .flag("--group [by]", "group the failed runs by cause, owner, queue or task; default cause")
    .flag("--csv", "with --group: as CSV");

type JournalOptions = OptionsOf<typeof journalCommand>;

export const registerJournal: Register = (program, out) => {
  journalCommand(program).answer(
    async ({ ops, client, options }, task?: string) => {
      const filter = await filterOf(client, options, task);
      return options.group ? ops.runs.failures(groupOf(filter, options)) : client.runs.journal(filter);
    },
    (answer, _, { csv }) => {
      if ("groups" in answer) return failuresText(answer, out, csv);
      out.more(answer.cursor);
      return answer.runs.length ? table(JOURNAL_COLUMNS, answer.runs, out) : "No runs.\n";
    },
  );
};

/** The input of `runs.failures`, which has fewer conditions. @throws `INVALID_OPTION` for the others */
function groupOf(filter: JournalFilter, { group, owner }: JournalOptions): InputTo<"runs.failures"> {
  const { queue, from, to, limit, outcome: _, ...others } = filter;
  const other = Object.entries(others).find(([name, value]) => name !== "owner" && value !== undefined)?.[0];
  if (other !== undefined)
    throw misuse(other === "sort" ? "slowest" : other, "cannot be combined with --group.", "Leave it out.");
  const by = group === true ? undefined : (group as InputTo<"runs.failures">["by"]);
  return { by, queue, owner, from: from as number, to: to as number, limit };
}

async function filterOf(client: Client, options: JournalOptions, task?: string): Promise<JournalFilter> {
  const { queue, owner, node, text, took, slowest, failures, cursor } = options;
  const { from, to } = await momentsOf(client, { from: options.from, to: options.to }, "before");
  if (from !== undefined && to !== undefined && from > to)
    throw misuse("from", "after --to.", "Give the earlier time first.");
  return {
    ...{ queue, node, text, took: took as Duration | undefined, cursor, from, to },
    ...(task === undefined ? { owner } : { task: taskRef(task, queue, owner) }),
    sort: slowest ? "took" : undefined,
    outcome: outcomesOf(options.outcome, failures),
    limit: options.limit,
  };
}

/** @param failures whether all failures are asked for. @throws `INVALID_OPTION` if both are given */
function outcomesOf(
  outcome: readonly Outcome[] | undefined,
  failures: boolean | undefined,
): readonly Outcome[] | undefined {
  if (!failures) return outcome;
  if (outcome !== undefined)
    throw misuse("failures", "cannot be combined with --outcome.", "Leave one of the two out.");
  return [...FAILURES];
}
