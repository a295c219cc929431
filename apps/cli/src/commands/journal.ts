import { FAILURES } from "@carillon/ops/words";
import type { Client, Duration, JournalFilter, Outcome } from "@carillon/sdk";
import { type Command, type OptionsOf, type Register, taskRef } from "../command.js";
import { misuse } from "../failure.js";
import { momentsOf } from "../moment.js";
import { table } from "../table.js";
import { GROUP_COLUMNS, groupRuns, JOURNAL_COLUMNS } from "./run-columns.js";

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
    .flag("--group", "count the runs by task, outcome and error: what failed, how often, and since when");

type JournalOptions = OptionsOf<typeof journalCommand>;

export const registerJournal: Register = (program, out) => {
  journalCommand(program).answer(
    async ({ client, options }, task?: string) => {
      const filter = await filterOf(client, options, task);
      const { runs, cursor } = await client.runs.journal(filter);
      return options.group ? { groups: groupRuns(runs), cursor } : { runs, cursor };
    },
    ({ groups, runs, cursor }) => {
      out.more(cursor);
      if (groups?.length) return table(GROUP_COLUMNS, groups, out);
      return runs?.length ? table(JOURNAL_COLUMNS, runs, out) : "No runs.\n";
    },
  );
};

async function filterOf(client: Client, options: JournalOptions, task?: string): Promise<JournalFilter> {
  const { queue, owner, node, text, took, slowest, failures, group, cursor } = options;
  const { from, to } = await momentsOf(client, { from: options.from, to: options.to }, "before");
  if (from !== undefined && to !== undefined && from > to)
    throw misuse("from", "after --to.", "Give the earlier time first.");
  return {
    ...{ queue, node, text, took: took as Duration | undefined, cursor, from, to },
    ...(task === undefined ? { owner } : { task: taskRef(task, queue, owner) }),
    sort: slowest ? "took" : undefined,
    outcome: outcomesOf(options.outcome, failures),
    limit: options.limit ?? (group ? 1_000 : undefined),
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
