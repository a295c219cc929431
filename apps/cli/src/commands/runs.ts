import { type Register, taskRef } from "../command.js";
import { summaryOf } from "../fields.js";
import { rows } from "../table.js";
import { RUN_COLUMNS, RUNNING_COLUMNS } from "./run-columns.js";

export const registerRuns: Register = (program, out) => {
  program
    .verb("runs", "a task's runs, newest first")
    .calls("runs.list", rows(out, "runs", RUN_COLUMNS, "No runs."), { flags: { limit: "-l, --limit <n>" } });
  program
    .verb("running", "what runs now, of all tasks or of one, longest first", summaryOf("runs.running"))
    .argument("[task]", "[owner/]id; default all tasks")
    .takes("runs.running", ["queue", "limit"], { flags: { limit: "-l, --limit <n>" } })
    .answer(
      async ({ client, options: { queue, owner, limit } }, task?: string) => ({
        runs: await client.runs.running({
          task: task === undefined ? undefined : taskRef(task, queue, owner),
          queue,
          limit,
        }),
      }),
      rows(out, "runs", RUNNING_COLUMNS, "Nothing runs."),
    );
};
