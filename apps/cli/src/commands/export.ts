import type { Client, ListOptions, Task } from "@carillon/sdk";
import { Argument } from "commander";
import { type Globals, type Register, withClient } from "../command.js";
import { writeNew } from "../config-writer.js";
import { type Conditions, conditionOptions, conditionsOf } from "./conditions.js";

interface ExportOptions extends Globals, Conditions {
  out?: string;
  force?: boolean;
}

const SYSTEMS = ["bullmq", "crontab", "json"] as const;
type System = (typeof SYSTEMS)[number];

/** Tasks read at once. */
const PAGE = 500;

export const registerExport: Register = (program, out) => {
  const command = program
    .command("export")
    .summary("write stored tasks for another system")
    .description(
      "Writes stored tasks for another system, all or those of conditions, and lists what that system cannot express.\n" +
        "bullmq: a module that upserts job schedulers of BullMQ 6. crontab: lines for cronie, of tasks whose payload has a\n" +
        "command. json: definitions, as carillon put reads them. Changes nothing.",
    )
    .addArgument(new Argument("<system>").choices(SYSTEMS))
    .option("-q, --queue <queue>", "only tasks of this queue")
    .option("--out <file>", "default: standard output")
    .option("--force", "replace the file");
  conditionOptions(command).action(async (system: System, _: unknown, command) => {
    const options: ExportOptions = command.optsWithGlobals();
    const { definitionOf, WRITERS } = await import("../export/load.js");
    const found = await withClient(options, (client) => tasksOf(client, conditionsOf(options)));
    const stored = found.map((task) => ({ definition: definitionOf(task), fired: task.fired }));
    const { tasks, text } = WRITERS[system](stored, Date.now());
    if (options.out !== undefined) await writeNew(options.out, text, options.force);
    if (options.json) return out.json({ tasks });
    for (const { task, notes } of tasks) for (const note of notes) out.note(`${task}: ${note}`);
    const written = tasks.filter(({ there }) => there !== undefined).length;
    await out.write(
      options.out === undefined ? text : `wrote ${written} of ${tasks.length} tasks to ${options.out}\n`,
    );
  });
};

/** All tasks that a filter selects. */
async function tasksOf(client: Client, filter: ListOptions): Promise<Task[]> {
  const tasks: Task[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.list({ ...filter, limit: PAGE, cursor });
    tasks.push(...page.tasks);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return tasks;
}
