import type { Duration, JournalFilter, Outcome, TaskRef } from "@carillon/sdk";
import { type Globals, limitOf, type Register, taskRef, wholeNumber, withClient } from "../command.js";
import { misuse } from "../failure.js";
import { type MomentOptions, readMoment } from "../moment.js";
import { table } from "../table.js";
import { HERE } from "../times.js";
import { outcomeOption, outcomesOf } from "./outcomes.js";
import { GROUP_COLUMNS, groupRuns, JOURNAL_COLUMNS } from "./run-columns.js";

interface JournalOptions extends Globals {
  queue?: string;
  outcome?: Outcome[];
  failures?: boolean;
  node?: string;
  text?: string;
  took?: string;
  slowest?: boolean;
  from?: string;
  to?: string;
  limit?: number;
  cursor?: string;
  group?: boolean;
}

export const registerJournal: Register = (program, out) => {
  program
    .command("journal")
    .summary("the runs that are over, of one task or all")
    .description("Lists the runs that are over, of all queues, by their end, newest first.")
    .argument("[task]", "[owner/]id; default all tasks")
    .option("-q, --queue <queue>", "of this queue")
    .addOption(outcomeOption("that had this outcome; several: a,b"))
    .option("--failures", "that failed, timed out, crashed or were lost")
    .option("--text <text>", "with this in the task's name, its type or the error")
    .option("--took <duration>", "that took at least this: 30s")
    .option("--slowest", "slowest first, instead of newest")
    .option("--node <name>", "that this node enqueued, or this worker ran")
    .option("--from <time>", "that ended since then: 2h before now, or ISO 8601, 09:00, yesterday")
    .option("--to <time>", "that ended before this time, as --from")
    .option("-n, --limit <n>", "at most 1,000; default 100", wholeNumber)
    .option("--cursor <cursor>", "of the page before")
    .option("--group", "count the runs by task, outcome and error: what failed, how often, and since when")
    .action(async (task: string | undefined, _: unknown, command) => {
      const options: JournalOptions = command.optsWithGlobals();
      const { queue, owner } = options;
      const page = await withClient(options, async (client) => {
        const ref: TaskRef | undefined = task === undefined ? undefined : taskRef(task, queue, owner);
        const filter = await filterOf(options, () => client.serverTime());
        const { text, took, slowest } = options;
        const more = {
          text,
          took: took as Duration | undefined,
          sort: slowest ? ("took" as const) : undefined,
        };
        return client.runs.journal({ ...filter, ...more, task: ref, owner: ref ? undefined : owner });
      });
      const { runs, cursor } = page;
      if (options.group) {
        const groups = groupRuns(runs);
        if (options.json) return out.json({ groups, cursor });
        await out.write(groups.length ? table(GROUP_COLUMNS, groups, out) : "No runs.\n");
      } else {
        if (options.json) return out.json(page);
        await out.write(runs.length ? table(JOURNAL_COLUMNS, runs, out) : "No runs.\n");
      }
      if (cursor) out.stderr.write(`There may be more: --cursor ${cursor}\n`);
    });
};

async function filterOf(
  { queue, node, from: first, to: last, limit, cursor, ...given }: JournalOptions,
  time: () => Promise<number>,
): Promise<JournalFilter> {
  const outcome = outcomesOf(given.outcome, given.failures);
  const filter = {
    queue,
    outcome,
    node,
    limit: limitOf(limit, 1_000) ?? (given.group ? 1_000 : undefined),
    cursor,
  };
  if (first === undefined && last === undefined) return filter;
  const sdk = await import("@carillon/sdk/schedule");
  const now = await time();
  const read = (text: string | undefined, field: MomentOptions["field"]) =>
    text === undefined
      ? undefined
      : readMoment(sdk, text, { zone: HERE, now, field, duration: "before" }).time;
  const [from, to] = [read(first, "from"), read(last, "to")];
  if (from !== undefined && to !== undefined && from > to)
    throw misuse("from", "after --to.", "Give the earlier time first.");
  return { ...filter, from, to };
}
