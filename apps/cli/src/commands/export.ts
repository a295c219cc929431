import { Argument } from "commander";
import { type Register, withClient } from "../command.js";
import { writeNew } from "../config-writer.js";
import { conditionOptions, conditionsOf } from "./conditions.js";
import { tasksOf } from "./task-pages.js";

const SYSTEMS = ["bullmq", "crontab", "json"] as const;
type System = (typeof SYSTEMS)[number];

export const registerExport: Register = (program, out) => {
  const command = program
    .verb(
      "export",
      "write stored tasks for another system",
      "Writes stored tasks for another system, all or those of conditions, and lists what that system cannot express.\n" +
        "bullmq: a module that upserts job schedulers of BullMQ 6. crontab: lines for cronie, of tasks whose payload has a\n" +
        "command. json: definitions, as carillon put reads them. Changes nothing.",
    )
    .addArgument(new Argument("<system>").choices(SYSTEMS))
    .flag("-q, --queue <queue>", "only tasks of this queue")
    .flag("--out <file>", "default: standard output")
    .flag("--force", "replace the file");
  conditionOptions(command).does(async (options, system: System) => {
    const { definitionOf, WRITERS } = await import("../export/load.js");
    const found = await withClient(options, (client) => tasksOf(client, conditionsOf(options), out));
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
