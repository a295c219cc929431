import { type Register, taskRef, withClient } from "../command.js";
import { facts } from "../text.js";
import { refuseBesideTask } from "./conditions.js";
import { STATS_COLUMNS, statsFacts } from "./stats-text.js";
import { PAGING, pageOptions, printPages } from "./task-pages.js";

export const registerStats: Register = (program, out) => {
  const command = program
    .verb(
      "stats",
      "statistics of a task, or of all",
      "Shows a task's statistics since it was put; without a task, a table of all tasks.",
    )
    .argument("[task]", "[owner/]id; no owner means --owner, else system; default all tasks")
    .flag("-q, --queue <queue>", "the task's queue; without a task: those of this queue");
  pageOptions(command).does(async (options, task: string | undefined) => {
    if (task === undefined)
      return printPages(options, STATS_COLUMNS, (_, filter, ops) => ops.runs.statsMany(filter), out);
    refuseBesideTask(options, PAGING);
    const stats = await withClient(options, (client) =>
      client.runs.stats(taskRef(task, options.queue, options.owner)),
    );
    if (options.json) return out.json(stats);
    await out.write(facts(statsFacts(stats), out.paint));
  });
};
