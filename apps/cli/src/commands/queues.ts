import type { Client, TaskStats } from "@carillon/sdk";
import { type Globals, type Register, withClient } from "../command.js";
import { type Column, table } from "../text.js";
import { ended } from "./stats-text.js";

interface QueueRow {
  readonly name: string;
  readonly tasks: number;
  /** Undefined: not for one owner to know. */
  readonly outcomes?: TaskStats["outcomes"];
}

export const registerQueues: Register = (program, out) => {
  program
    .command("queues")
    .summary("queues, how many tasks each has, and how its runs ended")
    .description(
      "Lists the queues that hold tasks, and how many runs of each ended how, deleted tasks included. With --owner: only that owner's tasks, and no runs.",
    )
    .action(async (_: unknown, command) => {
      const options: Globals = command.optsWithGlobals();
      const queues = await withClient(options, async (client) => {
        const names = await client.queues();
        return Promise.all(names.map((name) => about(client, name, options.owner === undefined)));
      });
      if (options.json) return out.json(queues);
      await out.write(queues.length ? table(COLUMNS, queues, out.paint) : "No queues.\n");
    });
};

async function about(client: Client, name: string, all: boolean): Promise<QueueRow> {
  const tasks = await client.count({ queue: name });
  return all ? { name, tasks, outcomes: await client.outcomes(name) } : { name, tasks };
}

const COLUMNS: Column<QueueRow>[] = [
  { title: "QUEUE", value: (queue) => queue.name },
  { title: "TASKS", right: true, value: (queue) => String(queue.tasks) },
  { title: "RUNS", value: ({ outcomes }) => (outcomes ? ended({ outcomes, open: 0 }) : "") },
];
