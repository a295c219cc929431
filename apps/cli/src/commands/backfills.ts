import type { Backfill } from "@carillon/sdk";
import { Option } from "commander";
import { type Globals, limitOf, type Register, wholeNumber, withClient } from "../command.js";
import { type Column, table } from "../table.js";

interface ListOptions extends Globals {
  queue?: string;
  state?: Backfill["state"];
  batch?: string;
  count?: number;
}

export const registerBackfills: Register = (program, out) => {
  program
    .command("backfills")
    .summary("the backfills, newest first")
    .description("Lists the backfills that run, or ended in the last 7 days, newest first.")
    .option("-q, --queue <queue>", "of this queue")
    .addOption(new Option("--state <state>", "in this state").choices(["running", "done", "cancelled"]))
    .option("--batch <id>", "that one call started")
    .option("-n, --count <n>", "at most 1,000; default 100", wholeNumber)
    .action(async (_: unknown, command) => {
      const options: ListOptions = command.optsWithGlobals();
      const { queue, owner, state, batch, count } = options;
      const limit = limitOf(count, 1_000);
      const found = await withClient(options, (client) =>
        client.backfills.list({ queue, owner, state, batch, limit }),
      );
      if (options.json) return out.json({ backfills: found });
      await out.write(found.length ? table(COLUMNS, found, out) : "No backfills.\n");
    });
};

const COLUMNS: Column<Backfill>[] = [
  { title: "ID", value: ({ id }) => id },
  { title: "TASK", value: ({ task }) => `${task.owner}/${task.id}` },
  { title: "QUEUE", value: ({ task }) => task.queue, rank: 2, least: 8 },
  { title: "STATE", value: ({ state }) => state },
  {
    title: "PROGRESS",
    value: ({ enqueued, skipped, total }) => `${enqueued + skipped}/${total}`,
    right: true,
  },
  { title: "STARTED", value: ({ created }, { when }) => when(created) },
  { title: "BY", value: ({ by }) => by, rank: 1, least: 8 },
  { title: "BATCH", value: ({ batch }) => batch ?? "", rank: 3 },
];
